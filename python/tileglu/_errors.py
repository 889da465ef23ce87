# SPDX-License-Identifier: Apache-2.0
"""Exceptions that carry a status of the C ABI (`status`) and the library's own text."""


class Error(Exception):
    """Any refusal or failure of tileglu. The message names the argument, its value and the rule it broke."""

    status = 7


class InvalidArgument(Error, ValueError):
    """A value is outside its rule; nothing could ever run it."""

    status = 1


class NotSupported(Error, NotImplementedError):
    """A right problem that no (or the named) backend or kernel implements here."""

    status = 2


class NotAvailable(Error, RuntimeError):
    """The named or needed device or backend is missing on this machine."""

    status = 3


class WorkspaceTooSmall(Error, ValueError):
    """The given workspace is shorter than Plan.workspace says."""

    status = 4


class CudaError(Error, RuntimeError):
    """The CUDA runtime, the driver or cuBLASLt reported an error."""

    status = 5


class OutOfMemory(Error, MemoryError):
    """The library could not get memory."""

    status = 6


class InternalError(Error, RuntimeError):
    """A bug in tileglu; please report the text."""

    status = 7


class LibraryNotFound(ImportError):
    """libtileglu could not be loaded, or is of another version than this package."""


BY_STATUS = {
    kind.status: kind
    for kind in (InvalidArgument, NotSupported, NotAvailable, WorkspaceTooSmall, CudaError, OutOfMemory, InternalError)
}
