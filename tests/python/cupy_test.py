# SPDX-License-Identifier: Apache-2.0
"""CuPy arrays, through DLPack: values, strides, streams, devices. Needs a GPU."""

import numpy as np
import pytest

import expected
import tileglu

cupy = pytest.importorskip("cupy", reason="cupy is not installed")
pytestmark = pytest.mark.gpu
SIZE = (64, 1024, 512)


def operands(dtype="bf16", size=SIZE):
    return tuple(to_gpu(array) for array in expected.operands(*size, dtype))


def to_gpu(array):
    """By bits, since not every CuPy can copy bf16 arrays of NumPy."""
    bits = array.view(np.uint16 if array.itemsize == 2 else np.uint32)
    return cupy.asarray(bits).view(array.dtype)


def to_host(array):
    bits = array.view(np.uint16 if array.itemsize == 2 else np.uint32)
    return cupy.asnumpy(bits).view(array.dtype)


def check(y, *arrays):
    expected.check(to_host(y), *map(to_host, arrays))


@pytest.fixture(autouse=True)
def bf16():
    try:
        operands(size=(1, 8, 8))[0].__dlpack__()
    except Exception as error:
        pytest.skip(f"this CuPy has no bf16: {error}")


def test_values():
    x, gate, up = operands()
    y = tileglu.glu(x, gate, up)
    assert isinstance(y, cupy.ndarray) and y.dtype == x.dtype and y.device == x.device
    check(y, x, gate, up)
    merged = cupy.concatenate([w.view(np.uint16) for w in (gate, up)]).view(gate.dtype)
    assert (tileglu.glu_merged(x, merged).view(np.uint16) == y.view(np.uint16)).all()


def test_out_and_strides():
    x, gate, up = operands()
    wide = cupy.zeros((64, 1024 + 64), np.uint16).view(x.dtype)
    assert tileglu.glu(x, gate, up, out=wide[:, :1024]) is not None
    check(cupy.ascontiguousarray(wide[:, :1024].view(np.uint16)).view(x.dtype), x, gate, up)
    assert not wide[:, 1024:].view(np.uint16).any(), "written outside out"
    with pytest.raises(tileglu.InvalidArgument, match="copy it first"):
        tileglu.glu(x.view(np.uint16)[:, ::2].view(x.dtype), gate[:, :256], up[:, :256])


def test_c15_the_current_stream_is_used():
    x, gate, up = operands()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        y = tileglu.glu(x, gate, up)
    stream.synchronize()
    check(y, x, gate, up)
    z = tileglu.glu(x, gate, up, stream=stream)
    stream.synchronize()
    assert (z.view(np.uint16) == y.view(np.uint16)).all()


def test_c16_no_tokens_and_mixed_places():
    x, gate, up = operands()
    assert tileglu.glu(x[:0], gate, up).shape == (0, 1024)
    with pytest.raises(tileglu.InvalidArgument, match="gate lies on host and x on cuda:0"):
        tileglu.glu(x, to_host(gate), up)
