# SPDX-License-Identifier: Apache-2.0
"""Finds and loads libtileglu, and mirrors the structs of tileglu.h. The library is loaded on first use, once."""

import collections
import ctypes
import os
import struct
import threading
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from pathlib import Path

from ._errors import BY_STATUS, InternalError, LibraryNotFound

VERSION = (0, 1)  # of the header that is mirrored here: major and minor
FILE_NAME = f"libtileglu.so.{VERSION[0]}"
ENVIRONMENT = "TILEGLU_LIBRARY"


class _Struct(ctypes.Structure):
    """A struct of the C ABI; all its fields start as 0 except struct_size."""

    def __init__(self, **fields):
        super().__init__(struct_size=ctypes.sizeof(self), **fields)


class Problem(_Struct):
    _fields_ = [("struct_size", c_uint32)]
    _fields_ += [(name, c_int32) for name in "dtype dtype_y activation layout memory device alignment".split()]
    _fields_ += [(name, c_int64) for name in "m n k lda ld_gate ld_up ldy".split()]
    _fields_ += [(name, c_float) for name in "alpha limit up_offset".split()]
    _fields_ += [("rounding", c_int32), ("operands", c_uint32)]
    _fields_ += [(name, c_int32) for name in "layout_add layout_pre reserved".split()]
    _fields_ += [(name, c_int64) for name in "ld_add ld_pre".split()]


# The fields after struct_size, those that were added later with their defaults.
Fields = collections.namedtuple("Fields", [name for name, _ in Problem._fields_[1:]], defaults=(0,) * 10)


class Options(_Struct):
    _fields_ = [("struct_size", c_uint32), ("backend", c_int32), ("kernel", c_char_p), ("flags", c_uint32)]
    _fields_ += [("reserved", c_uint32)]


class Args(_Struct):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32)]
    _fields_ += [(name, c_void_p) for name in "a gate up y workspace".split()]
    _fields_ += [("workspace_bytes", c_size_t), ("stream", c_void_p)]
    _fields_ += [(name, c_void_p) for name in "bias_gate bias_up add_gate add_up pre_gate pre_up".split()]


# pack_args(args, ARGS_START, a, gate, up, y, workspace, workspace_bytes, stream): all at once, which costs what setting
# one field does. pack_operands(args, OPERANDS_START, bias_gate, bias_up, add_gate, add_up, pre_gate, pre_up).
pack_args, ARGS_START = struct.Struct("7N").pack_into, Args.a.offset
pack_operands, OPERANDS_START = struct.Struct("6N").pack_into, Args.bias_gate.offset

_PROBLEM, _OPTIONS = POINTER(Problem), POINTER(Options)
_SIGNATURES = {
    "tileglu_version": (c_int,),
    "tileglu_build_info": (c_char_p,),
    "tileglu_last_error": (c_char_p,),
    "tileglu_backend_available": (c_int, c_int),
    "tileglu_kernel_name": (c_char_p, c_int, c_int),
    "tileglu_can_implement": (c_int, _PROBLEM, _OPTIONS, c_char_p, c_size_t),
    "tileglu_plan_create": (c_int, _PROBLEM, _OPTIONS, POINTER(c_void_p)),
    "tileglu_plan_destroy": (None, c_void_p),
    "tileglu_plan_describe": (c_char_p, c_void_p),
    "tileglu_plan_backend": (c_char_p, c_void_p),
    "tileglu_plan_kernel": (c_char_p, c_void_p),
    "tileglu_plan_workspace": (c_size_t, c_void_p),
    "tileglu_plan_run": (c_int, c_void_p, POINTER(Args)),
}

_library = None
_lock = threading.Lock()


def library():
    """The loaded library as a ctypes.CDLL; LibraryNotFound if there is none that fits."""
    global _library
    if _library is None:
        with _lock:
            if _library is None:
                _library = _load()
    return _library


def path():
    """What the loaded library was loaded as: a path, or a file name that the system's loader found."""
    return library()._name


def check(status):
    """Raises the exception of a status that is not TILEGLU_OK, with the library's text."""
    if status != 0:
        text = library().tileglu_last_error().decode("utf-8", "replace")
        raise BY_STATUS.get(status, InternalError)(text)


def _candidates():
    """What is tried, best first. A path in the environment is a choice: nothing else is tried then."""
    chosen = os.environ.get(ENVIRONMENT)
    if chosen:
        return [chosen]
    return [str(Path(__file__).parent / "_lib" / FILE_NAME), FILE_NAME]


def _load():
    tried = []
    for candidate in _candidates():
        try:
            loaded = ctypes.CDLL(candidate)
            for name, (result, *arguments) in _SIGNATURES.items():
                function = getattr(loaded, name)
                function.restype, function.argtypes = result, arguments
        except (OSError, AttributeError) as error:
            tried.append(f"{candidate} ({error})")
            continue
        return _checked_version(loaded, candidate)
    raise LibraryNotFound(f"no usable libtileglu; set {ENVIRONMENT} to its path. Tried: " + "; ".join(tried))


def _checked_version(loaded, path):
    number = loaded.tileglu_version()
    found = (number // 10000, number // 100 % 100)
    if found != VERSION:
        raise LibraryNotFound(
            f"{path} is tileglu {found[0]}.{found[1]}, this Python package needs {VERSION[0]}.{VERSION[1]}; "
            f"install the two from one version, or set {ENVIRONMENT} to the path of a fitting library"
        )
    return loaded


class ThreadState(threading.local):
    """What a call reuses, one for each thread since ctypes calls run without the interpreter lock: the argument structs
    with references to them, of calls without and with further operands, and the workspace of calls on host memory, which
    have ended when the call returns."""

    def __init__(self):
        plain, args = Args(), Args()
        self.plain_args, self.args = (plain, byref(plain)), (args, byref(args))
        self._buffer = None
        self._size = 0
        self._address = 0

    def host_workspace(self, size):
        """Address of `size` bytes, 256-byte aligned."""
        if size > self._size:
            self._buffer = None  # before the new one is made
            self._buffer = ctypes.create_string_buffer(size + 255)
            self._size = size
            self._address = ctypes.addressof(self._buffer) + 255 & ~255
        return self._address
