# SPDX-License-Identifier: Apache-2.0
"""PyTorch without a compiler."""

from . import NotFound, Prepared


def functional(case):
    """torch.nn.functional."""
    if case.arrays.name != "torch":
        raise NotFound("torch not installed")
    from torch.nn import functional

    return functional


def two_linears(F, x, gate, up):
    """What model code says: two products, SiLU, product."""
    return F.silu(F.linear(x, gate)) * F.linear(x, up)


def one_linear(F, x, gate_up):
    gate, up = F.linear(x, gate_up).chunk(2, dim=-1)
    return F.silu(gate) * up


def eager(case):
    F, sets = functional(case), case.sets
    return Prepared(lambda i: two_linears(F, sets[i].x, sets[i].gate, sets[i].up), "2 F.linear, F.silu, mul")


def merged(case):
    F, sets = functional(case), case.sets
    return Prepared(lambda i: one_linear(F, sets[i].x, sets[i].gate_up), "F.linear over 2N, F.silu, mul", "gate_up")


def gemm_only(case):
    F, sets = functional(case), case.sets
    return Prepared(lambda i: F.linear(sets[i].x, sets[i].gate_up), "F.linear over 2N", "gate_up", result="product")


CONTENDERS = {"torch_eager": eager, "torch_merged": merged, "torch_gemm_only": gemm_only}
