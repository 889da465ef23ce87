# SPDX-License-Identifier: Apache-2.0
"""torch: the ops torch.ops.tileglu.*, functions that call them or, in plain eager use, the library at once, and
FusedGatedMLP. Needs torch 2.4 or later; importing tileglu alone does not import this module.

Ops, on CPU and CUDA tensors, with fake implementations (contiguous results), gradients and autocast:

    glu(Tensor x, Tensor gate, Tensor up, str activation='silu', str backend='auto', str kernel='') -> Tensor
    glu_merged(Tensor x, Tensor gate_up, str activation='silu', str order='gate_up', ...) -> Tensor
    glu_out, glu_merged_out: the same with a last argument Tensor(a!) out, no result and no gradients
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import nn

from . import _arrays, _call, _gradients
from ._errors import InvalidArgument, NotSupported
from ._names import LAYOUTS

__all__ = ["FusedGatedMLP", "glu", "glu_merged"]

_SEPARATE, _TORCH = LAYOUTS["separate"], _arrays.TORCH
# Known before the first call, which may be one that Dynamo traces.
_arrays.known.update({torch.Tensor: _TORCH, nn.Parameter: _TORCH})
sys.modules[__package__]._torch_module = sys.modules[__name__]


def glu(
    x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, activation: str = "silu",
    *, out: torch.Tensor | None = None, stream: Any = None, backend: str = "auto", kernel: str = "",
) -> torch.Tensor:  # fmt: skip
    """tileglu.glu for tensors. Gradients are computed by recomputing gate and up in the tensors' dtype; autocast casts
    the operands as it does for nn.Linear; under torch.compile this is the op torch.ops.tileglu.glu. With out= there are
    no gradients: NotSupported if one is needed. With stream= that CUDA stream is used instead of the current one."""
    if _plain(x, gate, up, stream):
        call = _glu_of_kind if out is None else _glu  # out may be an array of another kind
        return call(_TORCH, x, gate, up, _SEPARATE, activation, out, stream, backend, kernel)
    if stream is not None:
        return _on_stream(stream, x, glu, x, gate, up, activation, out=out, backend=backend, kernel=kernel)
    if out is None:
        return torch.ops.tileglu.glu(x, gate, up, activation, backend, kernel)
    torch.ops.tileglu.glu_out(x, gate, up, activation, backend, kernel, out)
    return out


def glu_merged(
    x: torch.Tensor, gate_up: torch.Tensor, activation: str = "silu", order: str = "gate_up",
    *, out: torch.Tensor | None = None, stream: Any = None, backend: str = "auto", kernel: str = "",
) -> torch.Tensor:  # fmt: skip
    """tileglu.glu_merged for tensors; see glu."""
    if _plain(x, gate_up, None, stream):
        call = _glu_of_kind if out is None else _glu  # out may be an array of another kind
        return call(_TORCH, x, gate_up, None, _layout(order), activation, out, stream, backend, kernel)
    if stream is not None:
        return _on_stream(stream, x, glu_merged, x, gate_up, activation, order, out=out, backend=backend, kernel=kernel)
    if out is None:
        return torch.ops.tileglu.glu_merged(x, gate_up, activation, order, backend, kernel)
    torch.ops.tileglu.glu_merged_out(x, gate_up, activation, order, backend, kernel, out)
    return out


def _layout(order):
    if order == "separate" or order not in LAYOUTS:
        raise InvalidArgument(f"order={order!r} is none of {', '.join(name for name in LAYOUTS if name != 'separate')}")
    return LAYOUTS[order]


# --- The dispatcher, and when it is not needed ------------------------------------------------------------------------

_PLAIN_TYPES = frozenset((torch.Tensor, nn.Parameter))
_PLAIN_OR_NONE = _PLAIN_TYPES | {type(None)}
# Looked up once: _plain runs in every call. What torch.export traces without Dynamo shows as a dispatch mode.
_dynamo_traces, _grad_enabled = torch.compiler.is_dynamo_compiling, torch.is_grad_enabled
_autocast_enabled, _dispatch_modes = torch._C._is_any_autocast_enabled, torch._C._len_torch_dispatch_stack
_functorch_level, _glu, _glu_of_kind = torch._C._functorch.peek_interpreter_stack, _call.glu, _call.glu_of_kind


def _plain(x, gate, up, stream):
    """Whether a call may go past the dispatcher, which costs more than the library: eager, nothing that traces, records
    or casts, and no tensor subclass."""
    return not (
        _dynamo_traces()
        or type(x) not in _PLAIN_TYPES
        or type(gate) not in _PLAIN_TYPES
        or type(up) not in _PLAIN_OR_NONE
        or (_grad_enabled() and (x.requires_grad or gate.requires_grad or (up is not None and up.requires_grad)))
        or (stream is not None and x.is_cuda)  # new memory has to belong to that stream
        or (_autocast_enabled() and torch.is_autocast_enabled(x.device.type))
        or _dispatch_modes()
        or _functorch_level() is not None
    )


def _on_stream(stream, x, function, *arguments, **keywords):
    if torch.compiler.is_compiling():
        raise NotSupported("stream= cannot be compiled; use torch.cuda.stream around the compiled function")
    if not x.is_cuda:
        return function(*arguments, **keywords)
    external = torch.cuda.ExternalStream(_call.stream_number(stream), device=x.device)
    with torch.cuda.stream(external):
        return function(*arguments, **keywords)


_library = torch.library.Library("tileglu", "DEF")
_library.define(
    "glu(Tensor x, Tensor gate, Tensor up, str activation='silu', str backend='auto', str kernel='') -> Tensor"
)
_library.define(
    "glu_merged(Tensor x, Tensor gate_up, str activation='silu', str order='gate_up', str backend='auto', "
    "str kernel='') -> Tensor"
)
_library.define(
    "glu_out(Tensor x, Tensor gate, Tensor up, str activation, str backend, str kernel, Tensor(a!) out) -> ()"
)
_library.define(
    "glu_merged_out(Tensor x, Tensor gate_up, str activation, str order, str backend, str kernel, Tensor(a!) out) -> ()"
)


def _glu_op(x, gate, up, activation="silu", backend="auto", kernel=""):
    return _glu(_TORCH, x, gate, up, _SEPARATE, activation, None, None, backend, kernel)


def _glu_merged_op(x, gate_up, activation="silu", order="gate_up", backend="auto", kernel=""):
    return _glu(_TORCH, x, gate_up, None, _layout(order), activation, None, None, backend, kernel)


def _glu_out_op(x, gate, up, activation, backend, kernel, out):
    _glu(_TORCH, x, gate, up, _SEPARATE, activation, out, None, backend, kernel)


def _glu_merged_out_op(x, gate_up, activation, order, backend, kernel, out):
    _glu(_TORCH, x, gate_up, None, _layout(order), activation, out, None, backend, kernel)


def _glu_fake(x, gate, up, activation="silu", backend="auto", kernel=""):
    _check_fake(x, gate)
    torch._check(gate.shape[0] == up.shape[0] and gate.shape[1] == up.shape[1], lambda: "gate and up differ in shape")
    return x.new_empty((*x.shape[:-1], gate.shape[0]))


def _glu_merged_fake(x, gate_up, activation="silu", order="gate_up", backend="auto", kernel=""):
    _check_fake(x, gate_up)
    return x.new_empty((*x.shape[:-1], gate_up.shape[0] // 2))


def _check_fake(x, gate):
    torch._check(gate.dim() == 2 and x.dim() >= 1, lambda: "x must be [..., k] and the weights matrices")
    torch._check(gate.shape[1] == x.shape[-1], lambda: f"the weights have k={gate.shape[1]} columns, x k={x.shape[-1]}")
    torch._check(gate.dtype == x.dtype, lambda: f"the weights are {gate.dtype} and x is {x.dtype}")


def _without_gradients(op):
    """Autograd entry of an op that writes into `out`."""

    def entry(*arguments):
        if torch.is_grad_enabled() and any(isinstance(a, torch.Tensor) and a.requires_grad for a in arguments):
            raise NotSupported(
                "out= has no gradients, and an operand requires one: leave out= away, or use torch.no_grad()"
            )
        with torch._C._AutoDispatchBelowAutograd():
            return op(*arguments)

    return entry


def _with_autocast(op, device, key):
    """Autocast entry of an op: floating-point operands are cast as nn.Linear's are."""
    keys = torch._C.DispatchKeySet(key)

    def entry(*arguments):
        dtype = torch.get_autocast_dtype(device)
        cast = [a.to(dtype) if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in arguments]
        with torch._C._ExcludeDispatchKeyGuard(keys):
            return op(*cast)

    return entry


def _register():
    kernels = {
        "glu": _glu_op,
        "glu_merged": _glu_merged_op,
        "glu_out": _glu_out_op,
        "glu_merged_out": _glu_merged_out_op,
    }
    fakes = {"glu": _glu_fake, "glu_merged": _glu_merged_fake}
    for name, kernel in kernels.items():
        op = getattr(torch.ops.tileglu, name).default
        for device in ("CPU", "CUDA"):
            _library.impl(name, kernel, device)
        torch.library.register_fake(f"tileglu::{name}", fakes.get(name, lambda *arguments: None), lib=_library)
        if name in fakes:
            for device, key in (("cpu", "AutocastCPU"), ("cuda", "AutocastCUDA")):
                _library.impl(name, _with_autocast(op, device, getattr(torch._C.DispatchKey, key)), key)
        else:
            _library.impl(name, _without_gradients(op), "Autograd")
    _gradients.register(_library)


_register()


# --- Module -----------------------------------------------------------------------------------------------------------


class FusedGatedMLP(nn.Module):
    """down(act(gate(x)) * up(x)) with the gated projection as one kernel.

    hidden: k, intermediate: n. Its parameters are those of the usual modules, under the same names: gate_proj.weight
    [n, k], up_proj.weight [n, k] and down_proj.weight [k, n]. With merged=True gate_up_proj.weight [2n, k], gate rows
    first, stands for the first two.
    """

    def __init__(self, hidden, intermediate, activation="silu", *, merged=False, device=None, dtype=None):
        super().__init__()
        factory = {"bias": False, "device": device, "dtype": dtype}
        self.activation, self.merged = activation, merged
        if merged:
            self.gate_up_proj = nn.Linear(hidden, 2 * intermediate, **factory)
        else:
            self.gate_proj = nn.Linear(hidden, intermediate, **factory)
            self.up_proj = nn.Linear(hidden, intermediate, **factory)
        self.down_proj = nn.Linear(intermediate, hidden, **factory)

    @classmethod
    def from_mlp(cls, mlp):
        """A module that shares the Linear layers of an MLP with gate_proj, up_proj (or gate_up_proj), down_proj and
        act_fn (or activation_fn). InvalidArgument with the reason if it is not exactly such an MLP."""
        from ._mlp import examine

        found = examine(mlp)
        if found.reason:
            raise InvalidArgument(f"{type(mlp).__name__}: {found.reason}")
        fused = cls.__new__(cls)
        nn.Module.__init__(fused)
        fused.activation, fused.merged = found.activation, found.merged
        for name in ("gate_up_proj", "down_proj") if found.merged else ("gate_proj", "up_proj", "down_proj"):
            setattr(fused, name, getattr(mlp, name))
        return fused.train(mlp.training)

    def forward(self, x):
        """x: [..., k] -> [..., k]."""
        if self.merged:
            return self.down_proj(glu_merged(x, self.gate_up_proj.weight, self.activation))
        return self.down_proj(glu(x, self.gate_proj.weight, self.up_proj.weight, self.activation))

    def extra_repr(self):
        return f"activation={self.activation!r}, merged={self.merged}"
