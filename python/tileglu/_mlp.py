# SPDX-License-Identifier: Apache-2.0
"""Whether a torch module is exactly the gated MLP that tileglu computes, and if not, why."""

from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

_FORMULAS = {
    "silu": F.silu,
    "gelu_tanh": lambda g: F.gelu(g, approximate="tanh"),
    "gelu_erf": F.gelu,
    "relu": F.relu,
    "sigmoid": torch.sigmoid,
    "identity": lambda g: g,
}
# Far enough out to show clamping, dense enough to tell the two gelus (1e-3 apart at most) and any scaling.
_PROBE = torch.cat([torch.linspace(-12, 12, 97, dtype=torch.float64), torch.tensor([-1e4, -30.0, 30.0, 1e4]).double()])
_PROBE_ERROR = 1e-6  # in fp64, relative to 1 + |value|; what models compute in fp32 constants stays below


class Examined(NamedTuple):
    """reason: "" if the module is a plain gated MLP, else what it is not."""

    reason: str
    activation: str = ""
    merged: bool = False


def is_candidate(module):
    """Whether a module has the layers of a gated MLP at all."""
    return all(hasattr(module, name) for name in ("gate_proj", "up_proj")) or hasattr(module, "gate_up_proj")


def examine(mlp):
    """Examined for a module with gate_proj, up_proj (or gate_up_proj), down_proj and act_fn (or activation_fn)."""
    if not is_candidate(mlp) or not isinstance(getattr(mlp, "down_proj", None), nn.Module):
        return Examined("it has no layers gate_proj, up_proj and down_proj, nor gate_up_proj and down_proj")
    merged = not hasattr(mlp, "gate_proj")
    layers = ["gate_up_proj"] if merged else ["gate_proj", "up_proj"]
    for name in layers:
        if reason := layer_reason(getattr(mlp, name)):
            return Examined(f"{name} {reason}")
    weights = [getattr(mlp, name).weight for name in layers]
    if len({(w.dtype, w.device, w.shape) for w in weights}) != 1:
        return Examined("gate_proj and up_proj differ in shape, dtype or device")
    act = activation_function(mlp)
    if act is None:
        return Examined("it has neither act_fn nor activation_fn")
    activation = activation_name(act)
    if activation is None:
        return Examined(f"activation {function_name(act)} is none that tileglu has")
    return Examined("", activation, merged)


def activation_function(mlp):
    return getattr(mlp, "act_fn", None) or getattr(mlp, "activation_fn", None)


def layer_reason(layer):
    """Why a layer is no plain nn.Linear whose parameters may be used directly; "" if it is one."""
    if type(layer) is not nn.Linear:
        return f"is a {function_name(layer)}, not a plain nn.Linear (quantised, or wrapped by an adapter?)"
    if not is_untouched(layer):
        return "has hooks"
    for name, parameter in (("weight", layer.weight), ("bias", layer.bias)):
        if parameter is not None and (type(parameter) is not nn.Parameter or type(parameter.data) is not torch.Tensor):
            return f"has a {name} of type {function_name(parameter.data)} (quantised?)"
    if layer.bias is not None and (layer.bias.dtype, layer.bias.device) != (layer.weight.dtype, layer.weight.device):
        return "has a bias of another dtype or on another device than its weight"
    return ""


def is_untouched(layer):
    """What can change after a module was examined; cheap enough for every call."""
    return type(layer) is nn.Linear and not (layer._forward_hooks or layer._forward_pre_hooks)


def activation_name(act):
    """The name of an activation function or module, found by what it computes; None if tileglu does not have it."""
    if isinstance(act, nn.Module) and (list(act.parameters()) or list(act.buffers())):
        return None
    try:
        with torch.no_grad():
            found = act(_PROBE.clone())
    except Exception:  # a kernel for GPUs only, a function of something else: whatever it is, it is not ours
        return None
    if not isinstance(found, torch.Tensor) or found.shape != _PROBE.shape:
        return None
    for name, formula in _FORMULAS.items():
        wanted = formula(_PROBE)
        if bool(((found - wanted).abs() <= _PROBE_ERROR * (1 + wanted.abs())).all()):
            return name
    return None


def function_name(thing):
    return thing.__name__ if hasattr(thing, "__name__") else type(thing).__name__
