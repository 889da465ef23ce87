# SPDX-License-Identifier: Apache-2.0
"""glu and glu_merged on NumPy arrays against fp64: values, layouts, strides, edges, plans."""

import numpy as np
import pytest

import expected
import tileglu

SIZES = [(7, 40, 64), (1, 24, 33), (65, 200, 128)]


@pytest.mark.parametrize("dtype", expected.DTYPES)
@pytest.mark.parametrize("activation", expected.ACTIVATIONS)
@pytest.mark.parametrize("size", SIZES)
def test_values(size, activation, dtype):
    x, gate, up = expected.operands(*size, dtype)
    y = tileglu.glu(x, gate, up, activation)
    assert y.dtype == x.dtype
    expected.check(y, x, gate, up, activation)


@pytest.mark.parametrize("order", tileglu.MERGED_ORDERS)
def test_merged_layouts_give_the_same_bits(order):
    x, gate, up = expected.operands(9, 40, 64, "bf16")
    y = tileglu.glu(x, gate, up)
    assert np.array_equal(
        tileglu.glu_merged(x, expected.merged(gate, up, order), order=order).view(np.uint16), y.view(np.uint16)
    )


@pytest.mark.parametrize(
    "order, gate_up", [("gate_up", [[1], [2]]), ("up_gate", [[2], [1]]), ("interleaved_1", [[1], [2]])]
)
def test_which_half_is_the_gate(order, gate_up):
    one = np.ones((1, 1), np.float32)
    assert tileglu.glu_merged(one, np.array(gate_up, np.float32), order=order)[0, 0] == pytest.approx(1.46212, abs=1e-5)
    assert tileglu.glu(one, one, 2 * one)[0, 0] == pytest.approx(1.46212, abs=1e-5)  # exchanged: 1.76159


def test_addresses_are_those_of_the_array_interface():
    from tileglu._arrays import NUMPY

    base = np.arange(60, dtype=np.float32).reshape(5, 12)
    arrays = base[1:], base[:, 3:], np.ma.array(base)[2:], np.empty((0, 4), np.float16).view(np.recarray)
    assert list(NUMPY.addresses(*arrays)) == [array.__array_interface__["data"][0] for array in arrays]
    assert [NUMPY.read(array, "x", 0).pointer for array in arrays[:3]] == list(NUMPY.addresses(*arrays))[:3]


def test_a_numpy_scalar_is_no_array():
    with pytest.raises(tileglu.InvalidArgument, match="x is a numpy.float32"):
        tileglu.glu(np.float32(1), np.ones((1, 1), np.float32), np.ones((1, 1), np.float32))


def test_leading_dimensions():
    x, gate, up = expected.operands(24, 40, 64, "fp32")
    wanted = tileglu.glu(x, gate, up)
    assert np.array_equal(tileglu.glu(x.reshape(2, 3, 4, 64), gate, up), wanted.reshape(2, 3, 4, 40))
    assert tileglu.glu(x[0], gate, up).shape == (40,)
    expected.check(tileglu.glu(x[0], gate, up), x[0], gate, up)


@pytest.mark.parametrize("shape", [(0, 64), (2, 0, 64)])
def test_no_tokens_and_a_good_call_after(shape):
    x, gate, up = expected.operands(7, 40, 64, "fp32")
    assert tileglu.glu(np.empty(shape, np.float32), gate, up).shape == (*shape[:-1], 40)
    expected.check(tileglu.glu(x, gate, up), x, gate, up)


def test_no_columns_and_no_depth():
    x = np.ones((3, 4), np.float32)
    none = np.empty((0, 4), np.float32)
    assert tileglu.glu(x, none, none).shape == (3, 0)
    assert not tileglu.glu(x[:, :0], np.empty((5, 0), np.float32), np.empty((5, 0), np.float32)).any()


def strided_inputs():
    random = np.random.default_rng(1)
    full = random.standard_normal((2, 8, 96)).astype(np.float32)
    yield "rows with a stride", full[..., :64]
    yield "slice of the middle", full[:, 3:, :64]
    yield "transposed leading dimensions", full[..., :64].transpose(1, 0, 2)
    yield "every second column", np.repeat(full[..., :64], 2, axis=-1)[..., ::2]
    yield "expanded", np.broadcast_to(full[:1, :1, :64], (2, 5, 64))
    yield "backwards", full[:, ::-1, :64]
    yield "misaligned", np.frombuffer(b"\0" * 4 + full[..., :64].tobytes(), np.float32)[1:].reshape(2, 8, 64)
    yield "overlapping rows", np.lib.stride_tricks.as_strided(full, (5, 64), (8, 4))
    for stride in (0, 4, 28, 2**33 + 32):
        yield f"one row, stride {stride} bytes", np.lib.stride_tricks.as_strided(full, (1, 64), (stride, 4))


@pytest.mark.parametrize("name, x", list(strided_inputs()), ids=lambda value: value if isinstance(value, str) else "")
def test_c07_c08_strides_of_x(name, x):
    _, gate, up = expected.operands(1, 40, 64, "fp32")
    expected.check(tileglu.glu(x, gate, up), x, gate, up)


def test_strides_of_weights_and_out():
    x, gate, up = expected.operands(7, 40, 64, "fp32")
    wide = np.zeros((40, 160), np.float32)
    wide[:, :64], wide[:, 80:144] = gate, up
    guarded = np.full((11, 104), np.nan, np.float32)
    out = guarded[2:9, 8:48]
    assert tileglu.glu(x, wide[:, :64], wide[:, 80:144], out=out) is out
    expected.check(out, x, gate, up)
    guarded[2:9, 8:48] = np.nan
    assert np.isnan(guarded).all(), "written outside out"


def test_c08_size_one_dimensions_of_weights():
    x, gate, up = expected.operands(7, 1, 64, "fp32")
    odd = [np.lib.stride_tricks.as_strided(w, (1, 64), (4, 4)) for w in (gate, up)]
    assert np.array_equal(tileglu.glu(x, *odd), tileglu.glu(x, gate, up))
    x, gate, up = expected.operands(7, 40, 1, "fp32")
    odd = np.lib.stride_tricks.as_strided(x, (7, 1), (4, 12345))
    assert np.array_equal(tileglu.glu(odd, gate, up), tileglu.glu(x, gate, up))


def test_out_of_another_dtype():
    x, gate, up = expected.operands(7, 40, 64, "bf16")
    wide = tileglu.glu(x, gate, up, out=np.empty((7, 40), np.float32))
    assert np.array_equal(wide.astype(expected.BF16), tileglu.glu(x, gate, up))


def test_overflow_is_that_of_one_rounding():
    x = np.ones((1, 2), np.float16)
    y = tileglu.glu(x, np.full((1, 2), 128, np.float16), np.array([[131, 130.75]], np.float16))
    assert np.isposinf(y[0, 0])
    assert tileglu.glu(x * 200, np.full((1, 2), 250, np.float16), np.full((1, 2), 2.5e-6, np.float16))[
        0, 0
    ] == pytest.approx(1e5 * 2 * 200 * float(np.float16(2.5e-6)), rel=1e-3)


def test_plan_runs_what_it_was_made_for_and_nothing_else():
    x, gate, up = expected.operands(7, 40, 64, "fp32")
    plan = tileglu.plan(7, 40, 64, dtype="fp32", memory="host")
    assert plan.backend == "cpu" and plan.kernel in tileglu.kernels("cpu") and plan.kernel in plan.describe()
    assert isinstance(plan.workspace, int)
    expected.check(plan.run(x, gate, up, out=np.empty((7, 40), np.float32)), x, gate, up)
    with pytest.raises(tileglu.InvalidArgument, match="m=6; this plan was made for m=7"):
        plan.run(x[:6], gate, up, out=np.empty((6, 40), np.float32))
    with pytest.raises(tileglu.InvalidArgument, match="lda=128"):
        plan.run(np.zeros((7, 128), np.float32)[:, :64], gate, up, out=np.empty((7, 40), np.float32))
    with pytest.raises(tileglu.InvalidArgument, match="dtype=bf16"):
        plan.run(*expected.operands(7, 40, 64, "bf16"), out=np.empty((7, 40), expected.BF16))


def test_backend_and_kernel_by_name():
    x, gate, up = expected.operands(7, 40, 64, "fp32")
    for kernel in tileglu.kernels("cpu"):
        if tileglu.can_implement(7, 40, 64, dtype="fp32", memory="host", kernel=kernel)[0]:
            expected.check(tileglu.glu(x, gate, up, backend="cpu", kernel=kernel), x, gate, up)
    assert tileglu.plan(7, 40, 64, dtype="fp32", memory="host", kernel="dot_blocked").kernel == "dot_blocked"


def test_can_implement():
    assert tileglu.can_implement(7, 40, 64, memory="host") == (True, "")
    possible, reason = tileglu.can_implement(7, 41, 64, memory="host", layout="interleaved_8")
    assert not possible and "n=41 is not a multiple of 8" in reason


def test_backends():
    found = tileglu.backends()
    assert found["cpu"] is None and set(found) == {"sm90", "cublas", "cpu"}
