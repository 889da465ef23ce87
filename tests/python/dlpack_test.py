# SPDX-License-Identifier: Apache-2.0
"""Hand-made DLPack capsules, versioned and not, and __cuda_array_interface__, without any framework behind them."""

import ctypes

import numpy as np
import pytest

import expected
import tileglu
from tileglu import _dlpack

_new = ctypes.PyDLL(None).PyCapsule_New  # not ctypes.pythonapi's, which JAX changes
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_CODES = {"bfloat16": (4, 16), "float16": (2, 16), "float32": (2, 32), "int32": (0, 32), "float64": (2, 64)}


class Tensor:
    """An array known by its capsule only; records how it was asked."""

    def __init__(self, array, versioned=True, strides=True, device=(1, 0), flags=0, offset=0, major=1, lanes=1):
        self.array, self.versioned, self.device, self.asked = array, versioned, device, None
        size = array.itemsize
        self.shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        self.strides = (ctypes.c_int64 * array.ndim)(*(stride // size for stride in array.strides))
        code, bits = _CODES[array.dtype.name]
        tensor = _dlpack._DLTensor(array.ctypes.data - offset, *device, array.ndim, code, bits, lanes, self.shape,
                                   self.strides if strides else None, offset)  # fmt: skip
        self.managed = _dlpack._Versioned(major=major, flags=flags, tensor=tensor) if versioned else tensor

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **keywords):
        if not self.versioned and "max_version" in keywords:
            raise TypeError("unexpected keyword")
        self.asked = keywords
        return _new(ctypes.addressof(self.managed), b"dltensor_versioned" if self.versioned else b"dltensor", None)


@pytest.mark.parametrize("dtype", expected.DTYPES)
@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("strides", [True, False])
def test_values(dtype, versioned, strides):
    x, gate, up = expected.operands(7, 40, 64, dtype)
    out = np.zeros((7, 40), x.dtype)
    tensors = [Tensor(array, versioned, strides) for array in (x, gate, up, out)]
    assert tileglu.glu(*tensors[:3], out=tensors[3]) is tensors[3]
    expected.check(out, x, gate, up)
    assert ("stream" in tensors[0].asked) is False


def test_mixed_with_numpy_strided_and_with_an_offset():
    x, gate, up = expected.operands(7, 40, 64, "fp32")
    wide = np.zeros((7, 80), np.float32)
    wide[:, :64] = x
    y = np.empty((7, 40), np.float32)
    tileglu.glu(Tensor(wide[:, :64]), Tensor(gate, offset=256), up, out=y)
    expected.check(y, x, gate, up)


def test_dimensions_of_size_one_may_carry_any_stride():
    x, gate, up = expected.operands(14, 40, 64, "fp32")
    odd = np.lib.stride_tricks.as_strided(x, (1, 2, 1, 7, 64), (12, 1792, 20, 256, 4))
    y = np.empty((1, 2, 1, 7, 40), np.float32)
    tileglu.glu(Tensor(odd), gate, up, out=y)  # never copied, so refused if the strides meant anything
    expected.check(y.reshape(14, 40), x, gate, up)


REFUSED = {
    "read-only out": ({"out": {"flags": 1}}, "out is read-only"),
    "integers": ({"gate": {"array": np.zeros((40, 64), np.int32)}}, "gate has dtype int32"),
    "doubles": ({"up": {"array": np.zeros((40, 64))}}, "up has dtype float64"),
    "vectors": ({"x": {"lanes": 2}}, "x has dtype float32x2"),
    "unknown device": ({"x": {"device": (8, 0)}}, "x lies on DLPack device type 8"),
    "mixed devices": ({"gate": {"device": (2, 1)}}, "gate lies on cuda:1 and x on host"),
    "future version": ({"x": {"major": 2}}, "x is a DLPack 2.0 capsule"),
    "expanded x": ({"x": {"array": np.broadcast_to(np.float32(1), (7, 64))}}, "x of shape .* copy it first"),
    "no out": ({"out": None}, "pass out="),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    changes, text = REFUSED[name]
    arrays = dict(zip(("x", "gate", "up"), expected.operands(7, 40, 64, "fp32")), out=np.zeros((7, 40), np.float32))
    tensors = {}
    for operand, array in arrays.items():
        options = changes.get(operand, {})
        tensors[operand] = None if options is None else Tensor(**{"array": array, **options})
    with pytest.raises((tileglu.InvalidArgument, tileglu.NotSupported), match=text):
        tileglu.glu(**tensors)


def test_the_stream_goes_to_the_producer():
    tensor = Tensor(np.zeros((7, 64), np.float32), device=(2, 0))
    _dlpack.capsule_of(tensor, 0)
    assert tensor.asked["stream"] == 1  # the legacy default stream
    _dlpack.capsule_of(tensor, 77)
    assert tensor.asked["stream"] == 77


def test_a_used_capsule():
    tensor = Tensor(np.zeros((7, 64), np.float32))
    capsule = tensor.__dlpack__()
    name = ctypes.create_string_buffer(b"used_dltensor_versioned")
    ctypes.pythonapi.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
    ctypes.pythonapi.PyCapsule_SetName(capsule, name)
    with pytest.raises(tileglu.InvalidArgument, match="no unused DLPack capsule"):
        _dlpack.read(capsule, "x")


def test_cuda_array_interface():
    class Array:
        __cuda_array_interface__ = {"shape": (0, 64), "typestr": "<f4", "data": (0, False), "version": 3}

    class Integers:
        __cuda_array_interface__ = {"shape": (0, 64), "typestr": "<i4", "data": (0, False), "version": 3}

    weight = np.zeros((40, 64), np.float32)
    with pytest.raises(tileglu.InvalidArgument, match="gate lies on host and x on cuda:0"):
        tileglu.glu(Array(), weight, weight, out=weight)
    with pytest.raises(tileglu.NotSupported, match="x has typestr <i4"):
        tileglu.glu(Integers(), weight, weight, out=weight)
