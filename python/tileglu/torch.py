# SPDX-License-Identifier: Apache-2.0
"""torch: tileglu.glu and tileglu.glu_merged (which are these functions) on tensors, the ops torch.ops.tileglu.* and
FusedGatedMLP. Needs torch 2.4 or later; importing tileglu alone does not import this module.

Gradients, also of biases and addend, are computed by recomputing gate and up in the tensors' dtype; autocast casts the
operands as it does for nn.Linear; under torch.compile the calls are the ops. With out= there are no gradients, and
pre_gate and pre_up are not for compiled calls, autocast and gradients: NotSupported if one is needed. With stream= that
CUDA stream is used instead of the current one. Plain eager calls go past the dispatcher.

Ops, on CPU and CUDA tensors, with fake implementations (contiguous results), gradients and autocast:

    glu(Tensor x, Tensor gate, Tensor up, str activation='silu', Tensor? bias_gate=None, Tensor? bias_up=None,
        Tensor? add_gate=None, Tensor? add_up=None, float alpha=1., float limit=0., float up_offset=0.,
        str rounding='fp32', str backend='auto', str kernel_name='') -> Tensor
    glu_merged(Tensor x, Tensor gate_up, str activation='silu', str order='gate_up', Tensor? bias_gate=None, ...) -> Tensor
    glu_out, glu_merged_out: the same with a last argument *, Tensor(a!) out, no result and no gradients
"""

from __future__ import annotations

import functools
import sys

import torch
from torch import nn

from . import _arrays, _call, _dlpack, _gradients, _operands, glu, glu_merged
from ._errors import InvalidArgument, NotSupported
from ._names import LAYOUTS, MERGED_ORDERS, code

__all__ = ["FusedGatedMLP", "glu", "glu_merged"]

_SEPARATE, _TORCH = LAYOUTS["separate"], _arrays.TORCH
_ORDERS = {number: name for name, number in LAYOUTS.items()}


# --- The dispatcher, and when it is not needed ------------------------------------------------------------------------

_PLAIN_TYPES = frozenset((torch.Tensor, nn.Parameter))
_PLAIN_OR_NONE = _PLAIN_TYPES | {type(None)}
# Looked up once: _plain runs in every call. What torch.export traces without Dynamo shows as a dispatch mode.
_dynamo_traces, _grad_enabled = torch.compiler.is_dynamo_compiling, torch.is_grad_enabled
_autocast_enabled, _dispatch_modes = torch._C._is_any_autocast_enabled, torch._C._len_torch_dispatch_stack
_functorch_level = torch._C._functorch.peek_interpreter_stack
_glu, _glu_of_kind, _run_call = _call.glu, _call.glu_of_kind, _call.run


def _call_tensors(framework, x, gate, up, layout, how, operands, out, stream):
    """_call.glu for a tensor x."""
    if _dynamo_traces() or _dispatch_modes():
        return _dispatched(framework, x, gate, up, layout, how, operands, out, stream)
    warm = operands is None and stream is None and type(x) in _PLAIN_TYPES
    if warm:
        tensors = (x, gate) if up is None else (x, gate, up)
        if out is not None:
            tensors += (out,)
        key = x.shape, layout, how, up is None, out is None
        for check, call, empty in _warm.get(key, ()):
            if check(*tensors):
                return _run_call(call, _TORCH, x, gate, up, empty() if out is None else out, None)
    if _plain(x, gate, up, operands, stream):
        call = _glu_of_kind if type(out) in _PLAIN_OR_NONE else _glu  # out may be an array of another kind
        result = call(framework, x, gate, up, layout, how, operands, out, stream)
        if warm:
            _keep_warm(key, tensors, x, gate, up, layout, how, out)
        return result
    return _dispatched(framework, x, gate, up, layout, how, operands, out, stream)


def _dispatched(framework, x, gate, up, layout, how, operands, out, stream):
    """_call_tensors through the ops."""
    if stream is not None:
        return _on_stream(stream, framework, x, gate, up, layout, how, operands, out)
    activation, *others = how
    *added, pre_gate, pre_up = operands or (None,) * 6
    if pre_gate is not None or pre_up is not None:
        raise NotSupported(
            "pre_gate and pre_up are not written by calls that are compiled, cast or differentiated: leave them away, "
            "or call in plain eager mode under torch.no_grad()"
        )
    ops, how = torch.ops.tileglu, (*added, *others)
    if layout == _SEPARATE:
        return _into(out, ops.glu, ops.glu_out, x, gate, up, activation, *how)
    return _into(out, ops.glu_merged, ops.glu_merged_out, x, gate, activation, _ORDERS[layout], *how)


# Calls that were plain, by a key, with a check that says whether others are like them, and what makes their result. Both
# are what torch.compile uses for its own: the check sees types, shapes, strides, dtypes, devices, requires_grad, and by
# the dispatch keys what casts, records or is mapped, in a fifth of the time that it takes to ask for each. Where this torch
# lacks them, nothing is kept.
_warm = {}
_MOST_WARM, _MOST_OF_A_KEY = 4096, 4
_guards = getattr(torch._C._dynamo, "guards", None)
_TensorGuards, _empty_cpu = getattr(_guards, "TensorGuards", None), getattr(_guards, "_empty_strided_cpu", None)


def _keep_warm(key, tensors, x, gate, up, layout, how, out):
    call = _call.call_of(_TORCH, x, gate, up, layout, how, out) if type(out) in _PLAIN_OR_NONE else None
    if call is None or _TensorGuards is None or _empty_cpu is None:
        return
    sizes, strides = ([list(get(tensor)) for tensor in tensors] for get in (torch.Tensor.size, torch.Tensor.stride))
    guards = _TensorGuards(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides)
    if not guards.check(*tensors):  # as it never does for a tensor that is given twice
        return
    if x.is_cpu:
        empty = functools.partial(_empty_cpu, call.shape, _dlpack.compact_strides(call.shape), x.dtype)
    else:
        empty = functools.partial(torch.empty, call.shape, dtype=x.dtype, device=x.device)
    if len(_warm) >= _MOST_WARM:
        _warm.clear()
    _warm[key] = (*_warm.get(key, ())[-_MOST_OF_A_KEY + 1 :], (guards.check, call, empty))


def _into(out, op, op_out, *arguments):
    if out is None:
        return op(*arguments)
    op_out(*arguments, out=out)
    return out


def _plain(x, gate, up, operands, stream):
    """Whether an eager call may go past the dispatcher, which costs more than the library: nothing that records, casts or
    maps, and no tensor subclass."""
    return not (
        type(x) not in _PLAIN_TYPES
        or type(gate) not in _PLAIN_TYPES
        or type(up) not in _PLAIN_OR_NONE
        or (operands is not None and not _PLAIN_OR_NONE.issuperset(map(type, operands)))
        or (_grad_enabled() and _any_requires_grad(x, gate, up, operands))
        or (stream is not None and x.is_cuda)  # new memory has to belong to that stream
        or (_autocast_enabled() and torch.is_autocast_enabled(x.device.type))
        or _functorch_level() is not None
    )


def _any_requires_grad(x, gate, up, operands):
    return (
        x.requires_grad
        or gate.requires_grad
        or (up is not None and up.requires_grad)
        or (operands is not None and any(a is not None and a.requires_grad for a in operands))
    )


def _on_stream(stream, framework, x, *others):
    if torch.compiler.is_compiling():
        raise NotSupported("stream= cannot be compiled; use torch.cuda.stream around the compiled function")
    if not x.is_cuda:
        return _call_tensors(framework, x, *others, None)
    external = torch.cuda.ExternalStream(_call.stream_number(stream), device=x.device)
    with torch.cuda.stream(external):
        return _call_tensors(framework, x, *others, None)


# Known before the first call, which may be one that Dynamo traces.
_arrays.known.update({torch.Tensor: _TORCH, nn.Parameter: _TORCH})
sys.modules[__package__]._torch_call = _call_tensors


# --- Ops --------------------------------------------------------------------------------------------------------------

_HOW = (
    "Tensor? bias_gate=None, Tensor? bias_up=None, Tensor? add_gate=None, Tensor? add_up=None, float alpha=1., "
    "float limit=0., float up_offset=0., str rounding='fp32', str backend='auto', str kernel_name=''"
)
_ARGUMENTS = {
    "glu": f"Tensor x, Tensor gate, Tensor up, str activation='silu', {_HOW}",
    "glu_merged": f"Tensor x, Tensor gate_up, str activation='silu', str order='gate_up', {_HOW}",
}


def _glu_op(x, gate, up, activation="silu", *how, **out):
    return _run(x, gate, up, _SEPARATE, activation, *how, **out)


def _glu_merged_op(x, gate_up, activation="silu", order="gate_up", *how, **out):
    return _run(x, gate_up, None, code(MERGED_ORDERS, order, "order"), activation, *how, **out)


def _run(
    x, gate, up, layout, activation, bias_gate=None, bias_up=None, add_gate=None, add_up=None, alpha=1.0, limit=0.0,
    up_offset=0.0, rounding="fp32", backend="auto", kernel_name="", *, out=None,
):  # fmt: skip
    """The kernel of an op. The dispatcher leaves arguments away that have their defaults."""
    how = activation, alpha, limit, up_offset, rounding, backend, kernel_name
    operands = _operands.given(bias_gate, bias_up, add_gate, add_up, None, None)
    return _glu(_TORCH, x, gate, up, layout, how, operands, out, None)


def _glu_fake(x, gate, up, activation="silu", *how):
    _check_fake(x, gate, gate.shape[0], *how)
    torch._check(gate.shape[0] == up.shape[0] and gate.shape[1] == up.shape[1], lambda: "gate and up differ in shape")
    return x.new_empty((*x.shape[:-1], gate.shape[0]))


def _glu_merged_fake(x, gate_up, activation="silu", order="gate_up", *how):
    n = gate_up.shape[0] // 2
    _check_fake(x, gate_up, n, *how)
    return x.new_empty((*x.shape[:-1], n))


def _check_fake(x, gate, n, bias_gate=None, bias_up=None, add_gate=None, add_up=None, *_numbers):
    torch._check(gate.dim() == 2 and x.dim() >= 1, lambda: "x must be [..., k] and the weights matrices")
    torch._check(gate.shape[1] == x.shape[-1], lambda: f"the weights have k={gate.shape[1]} columns, x k={x.shape[-1]}")
    torch._check(gate.dtype == x.dtype, lambda: f"the weights are {gate.dtype} and x is {x.dtype}")
    for name, bias in (("bias_gate", bias_gate), ("bias_up", bias_up)):
        if bias is not None:
            torch._check(bias.dim() == 1 and bias.shape[0] == n, lambda: f"{name} has shape {bias.shape}, not [{n}]")
    torch._check((add_gate is None) == (add_up is None), lambda: "add_gate and add_up are given together")


def _without_result(op):
    def kernel(*arguments, **out):
        op(*arguments, **out)

    return kernel


def _without_gradients(op):
    """Autograd entry of an op that writes into `out`."""

    def entry(*arguments, out):
        tensors = [a for a in (*arguments, out) if isinstance(a, torch.Tensor)]
        if torch.is_grad_enabled() and any(a.requires_grad for a in tensors):
            raise NotSupported(
                "out= has no gradients, and an operand requires one: leave out= away, or use torch.no_grad()"
            )
        with torch._C._AutoDispatchBelowAutograd():
            return op(*arguments, out=out)

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


def _define(library, name, kernel, fake):
    """An op and its variant `name`_out."""
    library.define(f"{name}({_ARGUMENTS[name]}) -> Tensor")
    library.define(f"{name}_out({_ARGUMENTS[name]}, *, Tensor(a!) out) -> ()")
    for device in ("CPU", "CUDA"):
        library.impl(name, kernel, device)
        library.impl(f"{name}_out", _without_result(kernel), device)
    torch.library.register_fake(f"tileglu::{name}", fake, lib=library)
    torch.library.register_fake(f"tileglu::{name}_out", lambda *arguments, out: None, lib=library)
    op, op_out = (getattr(torch.ops.tileglu, variant).default for variant in (name, f"{name}_out"))
    for device, key in (("cpu", "AutocastCPU"), ("cuda", "AutocastCUDA")):
        library.impl(name, _with_autocast(op, device, getattr(torch._C.DispatchKey, key)), key)
    library.impl(f"{name}_out", _without_gradients(op_out), "Autograd")


_library = torch.library.Library("tileglu", "DEF")
_define(_library, "glu", _glu_op, _glu_fake)
_define(_library, "glu_merged", _glu_merged_op, _glu_merged_fake)
_gradients.register(_library)


# --- Module -----------------------------------------------------------------------------------------------------------


class FusedGatedMLP(nn.Module):
    """down(act(gate(x)) * up(x)) with the gated projection as one kernel.

    hidden: k, intermediate: n. Its parameters are those of the usual modules, under the same names: gate_proj.weight
    [n, k], up_proj.weight [n, k] and down_proj.weight [k, n], and with bias=True the bias of each. With merged=True
    gate_up_proj.weight [2n, k] and gate_up_proj.bias [2n], gate first, stand for the first two. activation, alpha,
    limit, up_offset, rounding: as in tileglu.glu.
    """

    def __init__(
        self, hidden, intermediate, activation="silu", *, merged=False, bias=False, alpha=1.0, limit=0.0,
        up_offset=0.0, rounding="fp32", device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        factory = {"bias": bias, "device": device, "dtype": dtype}
        self._set(activation, merged, alpha, limit, up_offset, rounding)
        if merged:
            self.gate_up_proj = nn.Linear(hidden, 2 * intermediate, **factory)
        else:
            self.gate_proj = nn.Linear(hidden, intermediate, **factory)
            self.up_proj = nn.Linear(hidden, intermediate, **factory)
        self.down_proj = nn.Linear(intermediate, hidden, **factory)

    def _set(self, activation, merged, alpha=1.0, limit=0.0, up_offset=0.0, rounding="fp32"):
        self.activation, self.merged = activation, merged
        self.how = {"alpha": alpha, "limit": limit, "up_offset": up_offset, "rounding": rounding}

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
        fused._set(found.activation, found.merged)
        for name in ("gate_up_proj", "down_proj") if found.merged else ("gate_proj", "up_proj", "down_proj"):
            setattr(fused, name, getattr(mlp, name))
        return fused.train(mlp.training)

    def forward(self, x):
        """x: [..., k] -> [..., k]."""
        return self.down_proj(gated(self, x, self.activation, self.merged, **self.how))

    def extra_repr(self):
        return ", ".join(
            f"{key}={value!r}"
            for key, value in {"activation": self.activation, "merged": self.merged, **self.how}.items()
        )


def gated(mlp, x, activation, merged, **how):
    """act(gate(x)) * up(x) by the layers gate_proj and up_proj, or gate_up_proj, of a module, with their biases."""
    if not merged:
        gate, up = mlp.gate_proj, mlp.up_proj
        return glu(x, gate.weight, up.weight, activation, bias_gate=gate.bias, bias_up=up.bias, **how)
    layer = mlp.gate_up_proj
    bias_gate, bias_up = (None, None) if layer.bias is None else layer.bias.chunk(2)
    return glu_merged(x, layer.weight, activation, bias_gate=bias_gate, bias_up=bias_up, **how)
