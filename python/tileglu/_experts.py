# SPDX-License-Identifier: Apache-2.0
"""The experts of Transformers' mixtures (Mixtral, Qwen-MoE, OLMoE, ...): one parameter gate_up_proj [experts, 2n, k] and
one down_proj [experts, k, n], each expert a plain gated MLP. Expert by expert the gated projection is one kernel, on views
of the weights."""

import torch
from torch import nn
from torch.nn import functional as F

from ._mlp import Examined, activation_function, activation_name, function_name
from . import glu_merged


def is_experts(module):
    return isinstance(getattr(module, "gate_up_proj", None), nn.Parameter)


def examine_experts(module):
    """Examined for a module of experts; its forward is not looked at."""
    for name in ("gate_up_proj", "down_proj"):
        weight = getattr(module, name, None)
        if type(weight) is not nn.Parameter or type(weight.data) is not torch.Tensor or weight.dim() != 3:
            return Examined(f"its {name} is no plain parameter [experts, rows, columns] (quantised, or reparametrised?)")
    act = activation_function(module)
    if act is None:
        return Examined("it has neither act_fn nor activation_fn")
    activation = activation_name(act)
    if activation is None:
        return Examined(f"activation {function_name(act)} is none that tileglu has")
    return Examined("", activation, merged=True)


def needs_fixed_shapes():
    """Whether the number of an expert's tokens, which the loop below needs on the host, cannot be had: tracing, or the
    capture of a CUDA graph."""
    return torch.compiler.is_compiling() or (torch.cuda.is_available() and torch.cuda.is_current_stream_capturing())


def experts_forward(module, x, top_k_index, top_k_weights, **how):
    """Mixed results of x [tokens, k] through the experts top_k_index [tokens, top k], weighted. how: activation,
    backend and kernel. An index past the last expert stands for none."""
    tokens, top_k = top_k_index.shape
    wanted = top_k_index.reshape(-1)
    order = wanted.argsort(stable=True)  # assignments by expert
    counts = torch.bincount(wanted, minlength=module.gate_up_proj.shape[0])[: module.gate_up_proj.shape[0]].tolist()
    order = order[: sum(counts)]
    parts = [
        F.linear(glu_merged(rows, module.gate_up_proj[expert], **how), module.down_proj[expert])
        for expert, rows in enumerate(x[order // top_k].split(counts))
        if len(rows)
    ]
    mixed = x.new_zeros(tokens * top_k, x.shape[-1])
    if parts:
        weights = top_k_weights.reshape(-1)[order].unsqueeze(-1)
        mixed = mixed.index_copy(0, order, (torch.cat(parts) * weights).to(x.dtype))
    return mixed.view(tokens, top_k, x.shape[-1]).sum(1)
