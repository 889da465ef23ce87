# SPDX-License-Identifier: Apache-2.0
"""Which function a call computes: activation, the numbers of swiglu, and where results are rounded."""

import ctypes
import numbers

from ._errors import InvalidArgument
from ._names import ACTIVATIONS, ROUNDINGS, code


def fields_of(activation, alpha, limit, up_offset, rounding):
    """Those fields of a tileglu_problem by name. Which numbers are allowed is for the library to say, except that 0, which
    stands for 1 there, is no alpha here."""
    alpha, limit, up_offset = _number(alpha, "alpha"), _number(limit, "limit"), _number(up_offset, "up_offset")
    if ctypes.c_float(alpha).value == 0:
        raise InvalidArgument(f"alpha={alpha} is 0 in fp32")
    return {
        "activation": code(ACTIVATIONS, activation, "activation"),
        "alpha": 0.0 if alpha == 1 else alpha,  # as it must be for all but swiglu
        "limit": limit,
        "up_offset": up_offset,
        "rounding": code(ROUNDINGS, rounding, "rounding"),
    }


def _number(value, name):
    """As a float. Arrays and tensors are none: they could change while a cache goes by what they were."""
    if not isinstance(value, numbers.Real):
        raise InvalidArgument(f"{name}={value!r} is no number")
    return float(value)
