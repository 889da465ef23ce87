# SPDX-License-Identifier: Apache-2.0
"""Gradients of the torch ops: gate and up are computed again in the operands' dtype, as eager code holds them."""

import torch
from torch.nn import functional as F

_aten = torch.ops.aten


def _sigmoid_parts(g):
    s = torch.sigmoid(g)
    return s, lambda d: d * s * (1 - s)


# act(g), and the gradient with respect to g from that with respect to act(g)
_ACTIVATIONS = {
    "silu": lambda g: (F.silu(g), lambda d: _aten.silu_backward(d, g)),
    "gelu_tanh": lambda g: (F.gelu(g, approximate="tanh"), lambda d: _aten.gelu_backward(d, g, approximate="tanh")),
    "gelu_erf": lambda g: (F.gelu(g), lambda d: _aten.gelu_backward(d, g)),
    "relu": lambda g: (F.relu(g), lambda d: _aten.threshold_backward(d, g, 0)),
    "sigmoid": _sigmoid_parts,
    "identity": lambda g: (g, lambda d: d),
}


def _glu_gradients(d, x, gate, up, activation, needs_x, needs_weights):
    """Gradients for x, gate and up; None where not needed."""
    g, u = F.linear(x, gate), F.linear(x, up)
    act, backward = _ACTIVATIONS[activation](g)
    d_g, d_u = backward(d * u), d * act
    d_x = torch.matmul(d_g, gate) + torch.matmul(d_u, up) if needs_x else None
    if not needs_weights:
        return d_x, None, None
    rows = x.reshape(-1, x.shape[-1])
    return d_x, *(part.reshape(-1, part.shape[-1]).t() @ rows for part in (d_g, d_u))


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


def _glu_setup(ctx, inputs, output):
    x, gate, up, ctx.activation, *_ = inputs
    ctx.save_for_backward(x, gate, up)


def _glu_backward(ctx, d):
    x, gate, up = ctx.saved_tensors
    needs_x, needs_gate, needs_up, *others = ctx.needs_input_grad
    gradients = _glu_gradients(d, x, gate, up, ctx.activation, needs_x, needs_gate or needs_up)
    return *gradients, *(None for _ in others)


def _merged_setup(ctx, inputs, output):
    x, gate_up, ctx.activation, ctx.order, *_ = inputs
    ctx.save_for_backward(x, gate_up)


def _merged_backward(ctx, d):
    x, gate_up = ctx.saved_tensors
    needs_x, needs_weights, *others = ctx.needs_input_grad
    d_x, d_gate, d_up = _glu_gradients(d, x, *_split(gate_up, ctx.order), ctx.activation, needs_x, needs_weights)
    return d_x, _join(d_gate, d_up, ctx.order) if needs_weights else None, *(None for _ in others)


def register(library):
    """Gives the functional ops their gradients."""
    torch.library.register_autograd("tileglu::glu", _glu_backward, setup_context=_glu_setup, lib=library)
    torch.library.register_autograd("tileglu::glu_merged", _merged_backward, setup_context=_merged_setup, lib=library)
