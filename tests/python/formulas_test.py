# SPDX-License-Identifier: Apache-2.0
"""Biases, swiglu, addend, saved pre-activations and rounding policies: NumPy arrays, torch tensors, plans."""

import numpy as np
import pytest

import expected
import tileglu

SIZES = {"numpy": (9, 40, 64), "torch": (9, 40, 64), "cuda": (9, 256, 128)}
PLACES = ["numpy", "torch", pytest.param("cuda", marks=pytest.mark.gpu)]


class Place:
    """Arrays of one kind."""

    def __init__(self, name):
        self.name, self.size = name, SIZES[name]
        self.torch = None if name == "numpy" else pytest.importorskip("torch", reason="torch is not installed")

    def array(self, a):
        """From NumPy."""
        if self.torch is None:
            return a
        dtype = getattr(self.torch, a.dtype.name)
        return self.torch.from_numpy(a.astype(np.float32)).to(dtype).to("cuda" if self.name == "cuda" else "cpu")

    def numpy(self, a):
        if self.torch is None:
            return a
        a = a.detach().cpu()
        return a.float().numpy().astype(expected.BF16) if a.dtype == self.torch.bfloat16 else a.numpy()


@pytest.fixture(params=PLACES)
def place(request):
    return Place(request.param)


def problem(place, name, dtype):
    """NumPy x, gate, up; NumPy operands by name; numbers; and a function that turns a dict of arrays."""
    m, n, _ = place.size
    operands, numbers = expected.formula(name, m, n, dtype)
    return expected.operands(*place.size, dtype), operands, numbers


def possible(place, dtype, numbers, operands=(), **options):
    """Skips on a GPU what no backend there takes (fp32)."""
    m, n, k = place.size
    memory = "cuda" if place.name == "cuda" else "host"
    able, reason = tileglu.can_implement(m, n, k, dtype=dtype, memory=memory, operands=operands, **numbers, **options)
    if not able:
        assert place.name == "cuda", reason
        pytest.skip(reason)


def named(operands):
    """For plan(): names of operands given by arrays."""
    return sorted({"addend" if name.startswith("add_") else name for name in operands})


@pytest.mark.parametrize("dtype", expected.DTYPES)
@pytest.mark.parametrize("name", expected.FORMULAS)
def test_values(place, name, dtype):
    weights, operands, numbers = problem(place, name, dtype)
    possible(place, dtype, numbers, named(operands))
    x, gate, up = map(place.array, weights)
    given = {key: place.array(value) for key, value in operands.items()}
    y = tileglu.glu(x, gate, up, **numbers, **given)
    expected.check(place.numpy(y), *weights, **numbers, **operands)
    assert (tileglu.glu(x, gate, up, **numbers, **given) == y).all(), "warm"
    out = place.array(np.zeros(y.shape, weights[0].dtype))
    assert tileglu.glu(x, gate, up, **numbers, **given, out=out) is out and (out == y).all()
    if name == "all":  # and none of it stays for the next call
        expected.check(place.numpy(tileglu.glu(x, gate, up)), *weights)


@pytest.mark.parametrize("order", tileglu.MERGED_ORDERS)
def test_merged(place, order):
    (x, gate, up), operands, numbers = problem(place, "all", "bf16")
    given = {key: place.array(value) for key, value in operands.items()}
    y = tileglu.glu_merged(
        place.array(x), place.array(expected.merged(gate, up, order)), order=order, **numbers, **given
    )
    expected.check(place.numpy(y), x, gate, up, **numbers, **operands)


@pytest.mark.parametrize("name", ["both biases", "all"])
def test_preactivations_and_unfused_rounding(place, name):
    """The unfused rounding has the bits of the steps on the saved sums (but for a last bit of an exponential at a tie); the
    single rounding has not."""
    weights, operands, numbers = problem(place, name, "bf16")
    x, gate, up = map(place.array, weights)
    given = {key: place.array(value) for key, value in operands.items()}
    m, n, _ = place.size
    wide = [place.array(np.full((m, n + 3), np.nan, expected.BF16)) for _ in range(2)]
    pre = {"pre_gate": wide[0][:, :n], "pre_up": wide[1][:, :n]}
    y = tileglu.glu(x, gate, up, **numbers, **given, **pre, rounding="unfused")
    g, u = (place.numpy(a).astype(np.float32) for a in pre.values())
    for found, wanted in zip((g, u), expected._sums(*weights, np.float64, **operands)):
        assert np.abs(found - wanted).max() <= 2**-8 * np.abs(wanted).max()
        assert (np.abs(found - wanted) <= 2**-8 * np.abs(wanted) + 1e-5).all()
    assert all(np.isnan(place.numpy(a)[:, n:].astype(np.float32)).all() for a in wide), "written beside"
    wanted = expected.steps(g, u, expected.to(expected.BF16), **numbers)
    same = lambda y: (place.numpy(y).astype(np.float32) == wanted).mean()  # noqa: E731
    assert same(y) > 0.99 and same(tileglu.glu(x, gate, up, **numbers, **given)) < 0.9


def test_plan(place):
    weights, operands, numbers = problem(place, "all", "bf16")
    m, n, k = place.size
    memory = "cuda" if place.name == "cuda" else "host"
    plan = tileglu.plan(m, n, k, memory=memory, operands=named(operands), **numbers)
    x, gate, up, out = map(place.array, (*weights, np.zeros((m, n), expected.BF16)))
    given = {key: place.array(value) for key, value in operands.items()}
    expected.check(place.numpy(plan.run(x, gate, up, out=out, **given)), *weights, **numbers, **operands)
    with pytest.raises(tileglu.InvalidArgument, match=r"operands=\[\]; this plan was made for operands=\['bias_gate'"):
        plan.run(x, gate, up, out=out)
    with pytest.raises(tileglu.InvalidArgument, match=r"have ld_add=\d+; this plan was made for ld_add=\d+"):
        wide = place.array(np.zeros((m, 2 * n), expected.BF16))
        plan.run(x, gate, up, out=out, **{**given, "add_gate": wide[:, :n], "add_up": wide[:, n:]})


def test_leading_dimensions_and_one_row():
    x, gate, up = expected.operands(6, 40, 64, "fp32")
    operands, numbers = expected.formula("all", 6, 40, "fp32")
    wanted = tileglu.glu(x, gate, up, **numbers, **operands)
    folded = {key: a.reshape(2, 3, 40) if a.ndim == 2 else a for key, a in operands.items()}
    assert np.array_equal(tileglu.glu(x.reshape(2, 3, 64), gate, up, **numbers, **folded), wanted.reshape(2, 3, 40))
    row = {key: a[0] if a.ndim == 2 else a for key, a in operands.items()}
    expected.check(tileglu.glu(x[0], gate, up, **numbers, **row), x[0], gate, up, **numbers, **row)


REFUSED = {
    "alpha without swiglu": ({"alpha": 1.5}, "alpha=1.5"),
    "limit without swiglu": ({"limit": 7}, "limit=7"),
    "alpha 0": ({"activation": "swiglu", "alpha": 0}, "alpha=0.0 is 0 in fp32"),
    "negative limit": ({"activation": "swiglu", "limit": -1.0}, "limit=-1 is below 0"),
    "infinite": ({"activation": "swiglu", "up_offset": float("inf")}, "up_offset=inf"),
    "no number": ({"activation": "swiglu", "alpha": "1.7"}, "alpha='1.7' is no number"),
    "an array as number": ({"activation": "swiglu", "limit": np.array(7.0)}, "limit=array"),
    "rounding": ({"rounding": "once"}, "rounding='once' is none of fp32, unfused"),
    "bias of another length": ({"bias_up": np.zeros(41, np.float32)}, r"bias_up of shape \[41\]"),
    "bias with a stride": ({"bias_gate": np.zeros(80, np.float32)[::2]}, "must be \\[40\\], contiguous"),
    "bias of another dtype": ({"bias_gate": np.zeros(40, np.float16)}, "bias_gate is fp16 and x is fp32"),
    "half an addend": ({"add_up": np.zeros((7, 40), np.float32)}, "add_gate is None"),
    "addend of another shape": ({"add_gate": np.zeros((7, 41), np.float32), "add_up": np.zeros((7, 40), np.float32)},
                                r"add_gate has shape \[7, 41\]"),
    "two strides": ({"add_gate": np.zeros((7, 48), np.float32)[:, :40], "add_up": np.zeros((7, 40), np.float32)},
                    "add_gate has row stride 48 and add_up 40"),
    "pre read-only": ({"pre_gate": np.broadcast_to(np.float32(1), (7, 40)), "pre_up": np.zeros((7, 40), np.float32)},
                      "pre_gate is read-only"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    change, text = REFUSED[name]
    x, gate, up = expected.operands(7, 40, 64, "fp32")
    out = np.full((7, 40), 3, np.float32)
    for _ in range(2):
        with pytest.raises(tileglu.InvalidArgument, match=text):
            try:
                tileglu.glu(x, gate, up, out=out, **change)
            except TypeError as error:  # what cannot be hashed
                raise tileglu.InvalidArgument(f"limit=array: {error}") from None
    assert (out == 3).all()


def test_names_of_operands_in_a_plan():
    with pytest.raises(tileglu.InvalidArgument, match="operands='bias' is none of bias_gate"):
        tileglu.plan(7, 40, 64, memory="host", operands=["bias"])
    with pytest.raises(tileglu.InvalidArgument, match="is one text"):
        tileglu.plan(7, 40, 64, memory="host", operands="bias_gate")
    possible, reason = tileglu.can_implement(7, 40, 64, memory="host", alpha=2.0)
    assert not possible and "alpha=2" in reason
