# SPDX-License-Identifier: Apache-2.0
"""The enumerations of tileglu.h by name. tests/python/header_test.py compares them with the header."""

from ._errors import InvalidArgument

DTYPES = {"bf16": 1, "fp16": 2, "fp32": 3}
ELEMENT_BYTES = {1: 2, 2: 2, 3: 4}
ACTIVATIONS = {"silu": 1, "gelu_tanh": 2, "gelu_erf": 3, "relu": 4, "sigmoid": 5, "identity": 6, "swiglu": 7}
LAYOUTS = {"separate": 1, "gate_up": 2, "up_gate": 3, "interleaved_1": 4, "interleaved_8": 5}
MERGED_ORDERS = {name: value for name, value in LAYOUTS.items() if name != "separate"}
ROUNDINGS = {"fp32": 1, "unfused": 2}
OPERANDS = {"bias_gate": 1, "bias_up": 2, "addend": 4, "preactivations": 8}
MEMORIES = {"host": 1, "cuda": 2}
BACKENDS = {"auto": 0, "sm90": 1, "cublas": 2, "cpu": 3}
HOST, CUDA = MEMORIES["host"], MEMORIES["cuda"]


def code(table, name, argument):
    """The number of `name` in one of the tables above; InvalidArgument that lists the names if it is none of them."""
    try:
        return table[name]
    except (KeyError, TypeError):
        raise InvalidArgument(f"{argument}={name!r} is none of {', '.join(table)}") from None


def name_of(table, number):
    return next((name for name, value in table.items() if value == number), str(number))
