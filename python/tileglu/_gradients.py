# SPDX-License-Identifier: Apache-2.0
"""Gradients of the torch ops: gate and up are computed again in the operands' dtype, as eager code holds them."""

import torch
from torch.nn import functional as F

_aten = torch.ops.aten


def _sigmoid_parts(g):
    s = torch.sigmoid(g)
    return s, lambda d: d * s * (1 - s)


def _swiglu(alpha):
    def parts(g):
        s = torch.sigmoid(alpha * g)
        return g * s, lambda d: d * s * (1 + alpha * g * (1 - s))

    return parts


# act(g), and the gradient with respect to g from that with respect to act(g)
_ACTIVATIONS = {
    "silu": lambda g: (F.silu(g), lambda d: _aten.silu_backward(d, g)),
    "gelu_tanh": lambda g: (F.gelu(g, approximate="tanh"), lambda d: _aten.gelu_backward(d, g, approximate="tanh")),
    "gelu_erf": lambda g: (F.gelu(g), lambda d: _aten.gelu_backward(d, g)),
    "relu": lambda g: (F.relu(g), lambda d: _aten.threshold_backward(d, g, 0)),
    "sigmoid": _sigmoid_parts,
    "identity": lambda g: (g, lambda d: d),
}


def _through_activation(d, g, u, activation, alpha, limit, up_offset):
    """Gradients for gate and up from that for the result."""
    parts = _swiglu(alpha) if activation == "swiglu" else _ACTIVATIONS[activation]
    if not limit:
        act, backward = parts(g)
        return backward(d * (u + up_offset)), d * act
    act, backward = parts(g.clamp(max=limit))
    d_g = backward(d * (u.clamp(-limit, limit) + up_offset))
    return d_g.masked_fill(g > limit, 0), (d * act).masked_fill(u.abs() > limit, 0)


class _Gradients:
    """Of one call, each made when asked for. operands: bias_gate, bias_up, add_gate, add_up."""

    def __init__(self, ctx, d, x, gate, up, operands):
        self._x, self._gate, self._up = x, gate, up
        bias_gate, bias_up, add_gate, add_up = operands
        g, u = _projection(x, gate, bias_gate, add_gate), _projection(x, up, bias_up, add_up)
        self._parts = _through_activation(d, g, u, ctx.activation, *ctx.numbers)

    def x(self):
        d_g, d_u = self._parts
        return torch.matmul(d_g, self._gate) + torch.matmul(d_u, self._up)

    def weight(self, which):
        """Of gate (0) or up (1)."""
        part = self._parts[which]
        return part.reshape(-1, part.shape[-1]).t() @ self._x.reshape(-1, self._x.shape[-1])

    def operands(self, needed):
        """Of those in their order, None where not needed."""
        biases = [part.reshape(-1, part.shape[-1]).sum(0) if need else None for part, need in zip(self._parts, needed)]
        addends = [part if need else None for part, need in zip(self._parts, needed[2:])]
        return *biases, *addends


def _projection(x, weight, bias, addend):
    result = F.linear(x, weight, bias)
    return result if addend is None else result + addend


def _split(gate_up, order):
    """(gate, up) of a merged matrix: views, except for interleaved_8."""
    rows, k = gate_up.shape
    n = rows // 2
    if order in ("gate_up", "up_gate"):
        first, second = gate_up[:n], gate_up[n:]
        return (first, second) if order == "gate_up" else (second, first)
    group = int(order.rpartition("_")[2])
    grouped = gate_up.reshape(n // group, 2, group, k)
    return grouped[:, 0].reshape(n, k), grouped[:, 1].reshape(n, k)


def _join(gate, up, order):
    """The inverse of _split."""
    if order in ("gate_up", "up_gate"):
        return torch.cat((gate, up) if order == "gate_up" else (up, gate))
    n, k = gate.shape
    group = int(order.rpartition("_")[2])
    return torch.stack([part.reshape(n // group, group, k) for part in (gate, up)], dim=1).reshape(2 * n, k)


def _save(ctx, tensors, how):
    """how: what follows the names in an op's arguments, from bias_gate on."""
    ctx.save_for_backward(*tensors, *how[:4])
    ctx.numbers = how[4:7]


def _glu_setup(ctx, inputs, output):
    x, gate, up, ctx.activation, *how = inputs
    _save(ctx, (x, gate, up), how)


def _glu_backward(ctx, d):
    x, gate, up, *operands = ctx.saved_tensors
    needs_x, needs_gate, needs_up, _, *needed = _needs(ctx)
    found = _Gradients(ctx, d, x, gate, up, operands)
    weights = [found.weight(which) if need else None for which, need in enumerate((needs_gate, needs_up))]
    return _as_given(ctx, found.x() if needs_x else None, *weights, None, *found.operands(needed))


def _merged_setup(ctx, inputs, output):
    x, gate_up, ctx.activation, ctx.order, *how = inputs
    _save(ctx, (x, gate_up), how)


def _merged_backward(ctx, d):
    x, gate_up, *operands = ctx.saved_tensors
    needs_x, needs_weights, _, _, *needed = _needs(ctx)
    found = _Gradients(ctx, d, x, *_split(gate_up, ctx.order), operands)
    weight = _join(found.weight(0), found.weight(1), ctx.order) if needs_weights else None
    return _as_given(ctx, found.x() if needs_x else None, weight, None, None, *found.operands(needed))


_MOST_ARGUMENTS = 15


def _needs(ctx):
    """ctx.needs_input_grad for all arguments; torch leaves those at the end away that have their defaults."""
    return *ctx.needs_input_grad, *(False,) * (_MOST_ARGUMENTS - len(ctx.needs_input_grad))


def _as_given(ctx, *gradients):
    """As many as there were arguments."""
    given = len(ctx.needs_input_grad)
    return (*gradients, *(None,) * given)[:given]


def register(library):
    """Gives the functional ops their gradients."""
    torch.library.register_autograd("tileglu::glu", _glu_backward, setup_context=_glu_setup, lib=library)
    torch.library.register_autograd("tileglu::glu_merged", _merged_backward, setup_context=_merged_setup, lib=library)
