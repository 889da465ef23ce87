# SPDX-License-Identifier: Apache-2.0
"""Transformers models with the gated projection of their MLPs as one kernel.

    report = tileglu.transformers.patch(model)     # in place; weights stay where they are
    print(report)                                  # what was patched, and what was not and why
    tileglu.transformers.unpatch(model)

Only the `forward` of the MLP modules is replaced, so state_dict, saving, loading and moving work as before. A module is
patched only if its class computes exactly down(act(gate(x)) * up(x)) as LlamaMLP, Phi3MLP or, for the experts of a
mixture, MixtralExperts of the installed transformers do (its code is compared), and if its layers and its activation
function are ones that tileglu has. What is changed later (an adapter put around a layer, hooks, another activation) is
noticed in each call, which then runs the original. So do experts while torch.compile traces or a CUDA graph is captured.
"""

import contextlib
import types
from typing import NamedTuple

import torch
from transformers.models.llama.modeling_llama import LlamaMLP
from transformers.models.mixtral.modeling_mixtral import MixtralExperts
from transformers.models.phi3.modeling_phi3 import Phi3MLP

from ._errors import Error, NotSupported
from ._experts import examine_experts, experts_forward, is_experts, needs_fixed_shapes
from ._mlp import activation_function, examine, is_candidate, is_untouched
from ._plan import can_implement, plan
from .torch import gated

__all__ = ["Patched", "Report", "patch", "patched", "unpatch"]

_DTYPES = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32"}
_TOKENS = 512  # for which the report names the kernel


class Patched(NamedTuple):
    """backend and kernel: what the planner takes for 512 tokens."""

    name: str
    activation: str
    backend: str
    kernel: str


class Report(NamedTuple):
    """patched: a list of Patched; skipped: {module name: reason} of modules that look like a gated MLP."""

    patched: list
    skipped: dict

    def __str__(self):
        kinds = {}
        for module in self.patched:
            kinds.setdefault((module.activation, module.backend, module.kernel), []).append(module.name)
        for name, reason in self.skipped.items():
            kinds.setdefault(reason, []).append(name)
        lines = [f"tileglu: {len(self.patched)} modules patched, {len(self.skipped)} skipped"]
        for kind, names in kinds.items():
            text = f"patched ({', '.join(kind)})" if isinstance(kind, tuple) else f"skipped ({kind})"
            lines.append(f"  {text}: {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else ""))
        return "\n".join(lines)


def patch(
    model: torch.nn.Module, *, training: bool = False, strict: bool = False, backend: str = "auto", kernel: str = "",
) -> Report:  # fmt: skip
    """Replaces the forward of every gated MLP of a model that tileglu can compute; returns a Report.

    training: also patch modules in training mode (the backward pass recomputes gate and up); otherwise they are
        skipped, and a patched module that is put into training mode runs its original forward.
    strict: NotSupported, and nothing patched, if a module was skipped.
    backend, kernel: as in tileglu.glu.
    """
    report, bound = Report([], {}), []
    for name, module in model.named_modules():
        if not is_candidate(module) or _is_patched(module):
            continue
        reason, found = _reason(module, training, backend, kernel)
        if reason:
            report.skipped[name] = reason
            continue
        chosen = plan(*_sizes(module, found), **_problem(module, found), backend=backend, kernel=kernel)
        report.patched.append(Patched(name, found.activation, chosen.backend, chosen.kernel))
        bound.append((module, _make_forward(module, found, training, backend, kernel)))
    if strict and report.skipped:
        raise NotSupported(str(report))
    for module, forward in bound:
        module.forward = types.MethodType(forward, module)
    return report


def unpatch(model: torch.nn.Module) -> int:
    """Gives every patched module of a model its own forward back; returns how many there were."""
    found = [module for module in model.modules() if _is_patched(module)]
    for module in found:
        del module.forward
    return len(found)


@contextlib.contextmanager
def patched(model, **options):
    """A context in which a model is patched; gives the Report."""
    report = patch(model, **options)
    try:
        yield report
    finally:
        unpatch(model)


def _is_patched(module):
    return hasattr(getattr(module.__dict__.get("forward"), "__func__", None), "tileglu_original")


def _reason(module, training, backend, kernel):
    """(why a module cannot be patched or "", Examined)."""
    if "forward" in module.__dict__:
        return "its forward was replaced by another library", None
    experts = is_experts(module)
    found = (examine_experts if experts else examine)(module)
    model = MixtralExperts if experts else Phi3MLP if found.merged else LlamaMLP
    if experts and not _same_code(type(module).forward, model.forward):  # before what it may not even have
        return f"{type(module).__name__}.forward is not that of MixtralExperts", found
    if found.reason:
        return found.reason, found
    if not _same_code(type(module).forward, model.forward):
        return f"{type(module).__name__}.forward is not the plain gated MLP", found
    if module.training and not training:
        return "in training mode: model.eval(), or patch(model, training=True)", found
    weight = _weight(module, found)
    if weight.dtype not in _DTYPES:
        return f"dtype {weight.dtype}", found
    if weight.device.type not in ("cpu", "cuda"):
        return f"on device {weight.device}", found
    try:
        possible, reason = can_implement(
            *_sizes(module, found), **_problem(module, found), backend=backend, kernel=kernel
        )
    except Error as error:
        possible, reason = False, str(error)
    return "" if possible else reason, found


def _same_code(function, reference):
    """Whether two functions do the same, their decorators included; the names of local variables are free."""
    mine = _codes(function)
    return mine is not None and mine == _codes(reference)


def _codes(function):
    """What a function and those that it wraps do, outermost first; None if one is no Python function."""
    found = []
    while function is not None:
        code = getattr(function, "__code__", None)
        if code is None:
            return None
        found.append((code.co_code, code.co_names, code.co_consts))
        function = getattr(function, "__wrapped__", None)
    return found


def _weight(module, found):
    if is_experts(module):
        return module.gate_up_proj
    return (module.gate_up_proj if found.merged else module.gate_proj).weight


def _sizes(module, found):
    rows, k = _weight(module, found).shape[-2:]
    return _TOKENS, rows // 2 if found.merged else rows, k


def _problem(module, found):
    weight = _weight(module, found)
    return {
        "dtype": _DTYPES[weight.dtype],
        "activation": found.activation,
        "operands": _biases(module, found),
        "layout": "gate_up" if found.merged else "separate",
        "memory": "cuda" if weight.is_cuda else "host",
        "device": weight.device.index or 0,
    }


def _biases(module, found):
    """Names of the operands that a module's call has."""
    if is_experts(module):
        return []
    gate, up = (module.gate_up_proj,) * 2 if found.merged else (module.gate_proj, module.up_proj)
    return [name for name, layer in (("bias_gate", gate), ("bias_up", up)) if layer.bias is not None]


def _make_forward(module, found, training, backend, kernel):
    """The new forward of a module. It is called `forward`, so that a pickled model comes back with its class's own."""
    original, act, activation = type(module).forward, activation_function(module), found.activation
    act_name = "act_fn" if hasattr(module, "act_fn") else "activation_fn"

    def usable(self, *layers):
        return (training or not self.training) and getattr(self, act_name) is act and all(map(is_untouched, layers))

    if is_experts(module):

        def forward(self, hidden_states, top_k_index, top_k_weights):
            plain = usable(self) and type(self.gate_up_proj) is torch.nn.Parameter
            if not plain or needs_fixed_shapes():
                return original(self, hidden_states, top_k_index, top_k_weights)
            how = {"activation": activation, "backend": backend, "kernel": kernel}
            return experts_forward(self, hidden_states, top_k_index, top_k_weights, **how)

    else:
        merged = found.merged

        def forward(self, x):
            if not usable(self, *((self.gate_up_proj,) if merged else (self.gate_proj, self.up_proj))):
                return original(self, x)
            return self.down_proj(gated(self, x, activation, merged, backend=backend, kernel=kernel))

    forward.tileglu_original = original
    return forward
