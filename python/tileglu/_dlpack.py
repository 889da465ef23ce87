# SPDX-License-Identifier: Apache-2.0
"""Reads DLPack capsules, versioned and not, with ctypes. A capsule is only borrowed: whoever holds it keeps the tensor
alive, and its own destructor releases it."""

import ctypes
from ctypes import POINTER, Structure, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p

from ._errors import InvalidArgument, NotSupported

_DEVICES = {1: "host", 2: "cuda", 3: "host", 13: "cuda"}  # kDLCPU, kDLCUDA, kDLCUDAHost (pinned), kDLCUDAManaged
_DTYPES = {(2, 16): "fp16", (2, 32): "fp32", (4, 16): "bf16"}  # (code, bits) with one lane
_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}
_READ_ONLY = 1
LEGACY_DEFAULT_STREAM = 1  # how DLPack names the CUDA stream 0


class _DLTensor(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class _Versioned(Structure):
    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("manager_ctx", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", _DLTensor),
    ]


_api = ctypes.PyDLL(None)  # not ctypes.pythonapi, whose argument types every package sets as it needs them
_api.PyCapsule_IsValid.restype = ctypes.c_int
_api.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_GetPointer.restype = c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def capsule_of(array, stream):
    """The capsule of an object with __dlpack__. `stream` is the CUDA stream that will use the data, as an integer."""
    keywords = {}
    if array.__dlpack_device__()[0] in (2, 13):
        keywords["stream"] = stream or LEGACY_DEFAULT_STREAM
    try:
        return array.__dlpack__(max_version=(1, 0), copy=False, **keywords)
    except TypeError:  # a producer from before DLPack 1.0 knows neither keyword
        return array.__dlpack__(**keywords)


def read(capsule, name):
    """(pointer, shape, strides in elements, dtype name, memory name, device, writable) of a capsule."""
    tensor, writable = _tensor(capsule, name)
    memory = _DEVICES.get(tensor.device_type)
    if memory is None:
        raise NotSupported(f"{name} lies on DLPack device type {tensor.device_type}; tileglu reads CPU and CUDA memory")
    dtype = _DTYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if dtype is None:
        kind = f"{_CODES.get(tensor.code, tensor.code)}{tensor.bits}" + (
            f"x{tensor.lanes}" if tensor.lanes != 1 else ""
        )
        raise NotSupported(f"{name} has dtype {kind}; tileglu takes bf16, fp16 and fp32")
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else compact_strides(shape)
    device = tensor.device_id if memory == "cuda" else 0
    return (tensor.data or 0) + tensor.byte_offset, shape, strides, dtype, memory, device, writable


def compact_strides(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def _tensor(capsule, name):
    if _api.PyCapsule_IsValid(capsule, b"dltensor_versioned"):
        managed = _Versioned.from_address(_api.PyCapsule_GetPointer(capsule, b"dltensor_versioned"))
        if managed.major != 1:
            raise NotSupported(
                f"{name} is a DLPack {managed.major}.{managed.minor} capsule; tileglu reads 1.x and older"
            )
        return managed.tensor, not managed.flags & _READ_ONLY
    if _api.PyCapsule_IsValid(capsule, b"dltensor"):
        return _DLTensor.from_address(_api.PyCapsule_GetPointer(capsule, b"dltensor")), True
    raise InvalidArgument(f"{name} gave {capsule!r}, which is no unused DLPack capsule")
