# SPDX-License-Identifier: Apache-2.0
"""Shapes and strides of arrays as the matrices of the C ABI: rows of contiguous elements, at one distance. And the rules
that operands keep towards each other."""

from ._errors import InvalidArgument
from ._names import CUDA, DTYPES, MEMORIES, name_of


def rows_of(shape, strides):
    """(rows, row stride) of an array [..., columns] as one matrix, or None if its rows are not at one distance.

    Dimensions of size 1 may carry any stride. The row stride is 0 where it means nothing: with at most one row. Columns
    have to lie side by side; rows must not overlap (an expanded array has no rows of its own).
    """
    *leading, columns = shape
    *distances, step = strides
    if 0 in leading:
        return 0, 0
    if columns > 1 and step != 1:
        return None
    rows, distance = 1, 0
    for size, stride in zip(reversed(leading), reversed(distances)):
        if size == 1:
            continue
        if rows == 1:
            distance = stride
        elif stride != rows * distance:
            return None
        rows *= size
    if rows == 1 or columns == 0:
        return rows, 0
    return (rows, distance) if distance >= columns else None


def not_rows(name, array):
    """What to say of an array for which rows_of gives None."""
    return (
        f"{name} of shape {list(array.shape)} has strides {list(array.strides)} (elements), which is not one matrix of "
        "contiguous rows at one distance"
    )


def matrix(array, name, what):
    """(rows, row stride) of a weight, which must be 2-D and is never copied."""
    if len(array.shape) != 2:
        raise InvalidArgument(f"{name} has shape {list(array.shape)}; it must be a matrix {what}")
    found = rows_of(array.shape, array.strides)
    if found is None:
        raise InvalidArgument(
            f"{name} of shape {list(array.shape)} has strides {list(array.strides)} (elements); the last must be 1 "
            f"and the first at least {array.shape[1]}. Weights are used where they lie: make it contiguous once, "
            "outside the call"
        )
    return found


def check_operand(a, array, name):
    """That an operand is of the dtype and on the device of x, which is `a`."""
    if array.dtype != a.dtype:
        raise InvalidArgument(
            f"{name} is {name_of(DTYPES, array.dtype)} and x is {name_of(DTYPES, a.dtype)}; they must be of one dtype"
        )
    _check_place(a, array, name)


def check_result(a, array, name, shape, written):
    """Row stride of an array as large as the result, checked."""
    if tuple(array.shape) != shape:
        raise InvalidArgument(f"{name} has shape {list(array.shape)}; the result is {list(shape)}")
    if written and not array.writable:
        raise InvalidArgument(f"{name} is read-only")
    _check_place(a, array, name)
    found = rows_of(array.shape, array.strides)
    if found is None:
        raise InvalidArgument(not_rows(name, array))
    return found[1]


def _check_place(a, array, name):
    if array.memory != a.memory or array.device != a.device:
        raise InvalidArgument(f"{name} lies on {_place(array)} and x on {_place(a)}; they must be on one device")


def _place(array):
    return f"cuda:{array.device}" if array.memory == CUDA else name_of(MEMORIES, array.memory)
