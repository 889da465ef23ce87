# SPDX-License-Identifier: Apache-2.0
"""Shapes and strides of arrays as the matrices of the C ABI: rows of contiguous elements, at one distance."""

from ._errors import InvalidArgument


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
