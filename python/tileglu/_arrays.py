# SPDX-License-Identifier: Apache-2.0
"""What tileglu reads from an array of any framework, without importing one: torch tensors by their attributes, NumPy
arrays, anything with __dlpack__, and anything with __cuda_array_interface__. A framework is only imported when an
argument already comes from it."""

import ctypes
import sys
from typing import NamedTuple

from . import _dlpack
from ._errors import InvalidArgument, NotSupported
from ._names import CUDA, DTYPES, HOST, MEMORIES


class Array(NamedTuple):
    """One operand as the library sees it."""

    pointer: int
    shape: tuple
    strides: tuple  # in elements
    dtype: int  # tileglu_dtype
    memory: int  # tileglu_memory
    device: int  # CUDA ordinal; 0 on the host
    writable: bool
    owner: object  # the array, or the capsule that keeps its memory


class Framework(NamedTuple):
    """How arrays of one kind are read and made.

    read(array, name, stream) -> Array; an error names the argument
    key(x, gate, up, out) -> all of their Arrays but the addresses, hashable and cheap (up and out may be None); None:
        arrays of this kind have to be read in every call
    addresses(x, gate, up, out) -> their addresses, 0 for None
    operands(arrays) -> ([key, ...], [address, ...]) of further arrays, each of which may be None
    empty(shape, like) -> new array of the dtype of `like`, where that lies; None: the caller has to pass out=
    scratch(size, like) -> (owner, address) of workspace on the CUDA device of `like`; None: the caller has to bring it
    stream(like) -> the framework's current CUDA stream for `like`, as an integer; None: the default stream, 0
    compact(array) -> a copy with contiguous rows; None: such an x is refused
    """

    read: object
    key: object = None
    addresses: object = None
    operands: object = None
    empty: object = None
    scratch: object = None
    stream: object = None
    compact: object = None


def framework_of(array, name):
    """The Framework for an argument; InvalidArgument if it is no array that tileglu can read."""
    kind = type(array)
    found = known.get(kind)
    if found is None:
        found = known[kind] = _find_framework(kind, name)
    return found


def _find_framework(kind, name):
    roots = {base.__module__.partition(".")[0] for base in kind.__mro__}  # also of subclasses made elsewhere
    if "torch" in roots and hasattr(kind, "data_ptr"):
        return TORCH
    if "numpy" in roots and issubclass(kind, sys.modules["numpy"].ndarray):
        return NUMPY
    if hasattr(kind, "__dlpack__"):
        return CUPY if "cupy" in roots else DLPACK
    if hasattr(kind, "__cuda_array_interface__"):
        return CUDA_INTERFACE
    raise InvalidArgument(
        f"{name} is a {kind.__module__}.{kind.__qualname__}, which is no torch or NumPy array and has neither "
        "__dlpack__ nor __cuda_array_interface__"
    )


known = {}  # frameworks by the type of the array, as framework_of found them


def _dtype(table, dtype, spelling, name):
    """tileglu_dtype of a framework's dtype object; `table` caches the answers."""
    found = table.get(dtype)
    if found is None:
        found = _SPELLINGS.get(spelling(dtype))
        if found is None:
            raise NotSupported(f"{name} has dtype {dtype}; tileglu takes bf16, fp16 and fp32")
        table[dtype] = found
    return found


_SPELLINGS = {"bfloat16": DTYPES["bf16"], "float16": DTYPES["fp16"], "float32": DTYPES["fp32"]}


def _keys_and_addresses(arrays, read):
    """See Framework.operands. read(array) -> what its key holds, and last its address."""
    found = [None if array is None else read(array) for array in arrays]
    return tuple([one and one[:-1] for one in found]), [one[-1] if one else 0 for one in found]


def _in_elements(shape, strides, size, name):
    """Strides in elements of `size` bytes. What a dimension of size 1 says means nothing."""
    if any(stride % size for length, stride in zip(shape, strides) if length > 1):
        raise InvalidArgument(f"{name} has strides of {strides} bytes, not multiples of its element size {size}")
    return tuple([stride // size for stride in strides])


# --- torch ------------------------------------------------------------------------------------------------------------

_torch_dtypes = {}


def _read_torch(tensor, name, _stream):
    dtype = _dtype(_torch_dtypes, tensor.dtype, lambda dtype: str(dtype).partition(".")[2], name)
    if tensor.is_cuda:
        memory, device = CUDA, tensor.get_device()
    elif tensor.device.type == "cpu":
        memory, device = HOST, 0
    else:
        raise NotSupported(f"{name} is on device {tensor.device}; tileglu reads tensors on cpu and cuda")
    return Array(tensor.data_ptr(), tensor.shape, tensor.stride(), dtype, memory, device, True, tensor)


def _torch_key(x, gate, up, out):
    return (
        x.shape, x.stride(), x.dtype, x.get_device(), gate.shape, gate.stride(), gate.dtype, gate.get_device(),
        up is not None and (up.shape, up.stride(), up.dtype, up.get_device()),
        out is not None and (out.shape, out.stride(), out.dtype, out.get_device()),
    )  # fmt: skip


def _torch_addresses(x, gate, up, out):
    return x.data_ptr(), gate.data_ptr(), 0 if up is None else up.data_ptr(), out.data_ptr()


def _torch_operands(arrays):
    return _keys_and_addresses(
        arrays, lambda array: (array.shape, array.stride(), array.dtype, array.get_device(), array.data_ptr())
    )


def _torch_scratch(size, like):
    torch = sys.modules["torch"]
    buffer = torch.empty(size, dtype=torch.uint8, device=like.device)
    return buffer, buffer.data_ptr()


def _torch_stream(like):
    if like.is_cpu:
        return 0
    torch = sys.modules["torch"]
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if raw is not None:
        return raw(like.get_device())
    return torch.cuda.current_stream(like.device).cuda_stream


TORCH = Framework(
    read=_read_torch,
    key=_torch_key,
    addresses=_torch_addresses,
    operands=_torch_operands,
    empty=lambda shape, like: like.new_empty(*shape),  # which costs less than with the tuple
    scratch=_torch_scratch,
    stream=_torch_stream,
    compact=lambda tensor: tensor.clone(memory_format=sys.modules["torch"].contiguous_format),
)


# --- NumPy ------------------------------------------------------------------------------------------------------------

_numpy_dtypes = {}


def _read_numpy(array, name, _stream):
    kind = array.dtype
    dtype = _dtype(_numpy_dtypes, kind, lambda kind: kind.name if kind.isnative else None, name)
    size = kind.itemsize
    strides = _in_elements(array.shape, array.strides, size, name)
    return Array(_numpy_pointer(array), array.shape, strides, dtype, HOST, 0, array.flags.writeable, array)


def _numpy_key(x, gate, up, out):
    return (
        x.shape, x.strides, x.dtype, gate.shape, gate.strides, gate.dtype,
        up is not None and (up.shape, up.strides, up.dtype),
        out is not None and (out.shape, out.strides, out.dtype, out.flags.writeable),
    )  # fmt: skip


# NumPy's C ABI puts the address of the elements right after the object's head. Reading it there costs a tenth of asking
# for __array_interface__, which tests/python/numpy_test.py compares it with.
_AFTER_HEAD = object.__basicsize__
_pointer_at = ctypes.c_void_p.from_address


def _numpy_pointer(array):
    return _pointer_at(id(array) + _AFTER_HEAD).value or 0


def _numpy_addresses(x, gate, up, out):
    return (
        _pointer_at(id(x) + _AFTER_HEAD).value,
        _pointer_at(id(gate) + _AFTER_HEAD).value,
        0 if up is None else _pointer_at(id(up) + _AFTER_HEAD).value,
        _pointer_at(id(out) + _AFTER_HEAD).value,
    )


def _numpy_operands(arrays):
    return _keys_and_addresses(
        arrays, lambda array: (array.shape, array.strides, array.dtype, array.flags.writeable, _numpy_pointer(array))
    )


if sys.implementation.name != "cpython":

    def _numpy_pointer(array):  # noqa: F811
        return array.__array_interface__["data"][0]

    def _numpy_addresses(x, gate, up, out):  # noqa: F811
        return tuple(0 if array is None else _numpy_pointer(array) for array in (x, gate, up, out))


def _numpy_empty(shape, like):
    return sys.modules["numpy"].empty(shape, dtype=like.dtype)


NUMPY = Framework(
    read=_read_numpy,
    key=_numpy_key,
    addresses=_numpy_addresses,
    operands=_numpy_operands,
    empty=_numpy_empty,
    compact=lambda array: sys.modules["numpy"].array(array, order="C", copy=True),
)


# --- Anything with __dlpack__, CuPy among it --------------------------------------------------------------------------


def _read_dlpack(array, name, stream):
    capsule = _dlpack.capsule_of(array, stream)
    pointer, shape, strides, dtype, memory, device, writable = _dlpack.read(capsule, name)
    if type(array).__module__.startswith("jax"):  # immutable, but not marked as such
        writable = False
    return Array(pointer, shape, strides, DTYPES[dtype], MEMORIES[memory], device, writable, capsule)


def _cupy_empty(shape, like):
    cupy = sys.modules["cupy"]
    with cupy.cuda.Device(like.device.id):
        return cupy.empty(shape, dtype=like.dtype)


def _cupy_scratch(size, like):
    cupy = sys.modules["cupy"]
    with cupy.cuda.Device(like.device.id):
        buffer = cupy.empty(size, dtype="uint8")
    return buffer, buffer.data.ptr


def _cupy_stream(like):
    cupy = sys.modules["cupy"]
    with cupy.cuda.Device(like.device.id):
        return cupy.cuda.get_current_stream().ptr


DLPACK = Framework(read=_read_dlpack)
CUPY = Framework(read=_read_dlpack, empty=_cupy_empty, scratch=_cupy_scratch, stream=_cupy_stream)


# --- __cuda_array_interface__ (has no bf16) ---------------------------------------------------------------------------

_TYPES = {"<f2": (DTYPES["fp16"], 2), "<f4": (DTYPES["fp32"], 4)}
_DEVICE_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL


def _read_cuda_interface(array, name, _stream):
    interface = array.__cuda_array_interface__
    kind = interface["typestr"]
    if kind not in _TYPES:
        raise NotSupported(f"{name} has typestr {kind}; of __cuda_array_interface__ tileglu takes <f2 and <f4")
    dtype, size = _TYPES[kind]
    pointer, read_only = interface["data"]
    shape = tuple(interface["shape"])
    strides = interface.get("strides")
    if strides is None:
        strides = _dlpack.compact_strides(shape)
    else:
        strides = _in_elements(shape, strides, size, name)
    device = _device_of(pointer, name) if pointer else 0
    return Array(pointer, shape, strides, dtype, CUDA, device, not read_only, array)


def _device_of(pointer, name):
    """The CUDA ordinal of an address, which the interface does not carry, from the driver."""
    ordinal = ctypes.c_int()
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise NotSupported(f"{name} is a CUDA array, but there is no CUDA driver ({error})") from None
    result = driver.cuPointerGetAttribute(ctypes.byref(ordinal), _DEVICE_ORDINAL, ctypes.c_uint64(pointer))
    if result != 0:
        raise InvalidArgument(f"{name}: the CUDA driver does not know the address {pointer:#x} (error {result})")
    return ordinal.value


CUDA_INTERFACE = Framework(
    read=_read_cuda_interface,
    stream=lambda like: like.__cuda_array_interface__.get("stream") or 0,
)
