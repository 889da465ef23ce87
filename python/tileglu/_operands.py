# SPDX-License-Identifier: Apache-2.0
"""Operands beside x, the weights and the result: biases, an addend, saved pre-activations. None, or a tuple of six arrays
and Nones in the order of NAMES."""

from ._errors import InvalidArgument
from ._names import LAYOUTS, OPERANDS
from ._shapes import check_operand, check_result

NAMES = "bias_gate", "bias_up", "add_gate", "add_up", "pre_gate", "pre_up"


def given(bias_gate, bias_up, add_gate, add_up, pre_gate, pre_up):
    """The tuple, or None if all are None."""
    if bias_gate is bias_up is add_gate is add_up is pre_gate is pre_up is None:
        return None
    return bias_gate, bias_up, add_gate, add_up, pre_gate, pre_up


def fields_of(a, arrays, shape):
    """Their fields of a tileglu_problem by name, checked against x (`a`) and the result's shape. arrays: the Array of each, or
    None."""
    bias_gate, bias_up, *pairs = arrays
    bits = _bias(a, bias_gate, "bias_gate", shape[-1]) | _bias(a, bias_up, "bias_up", shape[-1])
    found = {}
    for operand, name, pair in (("addend", "add", pairs[:2]), ("preactivations", "pre", pairs[2:])):
        if pair[0] is not None or pair[1] is not None:
            bits |= OPERANDS[operand]
            found |= {f"ld_{name}": _pair(a, pair, name, shape), f"layout_{name}": LAYOUTS["separate"]}
    return {"operands": bits, **found}


def _bias(a, bias, name, n):
    """Its bit, 0 without one."""
    if bias is None:
        return 0
    check_operand(a, bias, name)
    if tuple(bias.shape) != (n,) or (n > 1 and bias.strides[0] != 1):
        raise InvalidArgument(
            f"{name} of shape {list(bias.shape)} has strides {list(bias.strides)} (elements); it must be [{n}], contiguous"
        )
    return OPERANDS[name]


def _pair(a, pair, name, shape):
    """The row stride of an addend or of pre-activations."""
    distances = []
    for array, half in zip(pair, ("gate", "up")):
        if array is None:
            raise InvalidArgument(f"{name}_{half} is None; {name}_gate and {name}_up are given together")
        check_operand(a, array, f"{name}_{half}")
        distances.append(check_result(a, array, f"{name}_{half}", shape, written=name == "pre"))
    if distances[0] != distances[1]:
        raise InvalidArgument(
            f"{name}_gate has row stride {distances[0]} and {name}_up {distances[1]}; they must be equal"
        )
    return distances[0]
