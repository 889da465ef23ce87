# SPDX-License-Identifier: Apache-2.0
"""JAX: glu and glu_merged as XLA custom calls, under jit, vmap, grad and on CPU and CUDA devices.

Importing this module registers the handlers of libtileglu_jax, a small library beside libtileglu. It is there if the
headers of jaxlib were found when tileglu was built; without it the import fails with LibraryNotFound.
"""

from __future__ import annotations

import ctypes
import functools
import os
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from . import _formula, _library
from ._errors import InvalidArgument, LibraryNotFound, NotSupported
from ._names import BACKENDS, DTYPES, LAYOUTS, MERGED_ORDERS, OPERANDS, code

__all__ = ["glu", "glu_merged"]

_TARGET = "tileglu"
_FILE_NAME = "libtileglu_jax.so"
_DTYPES = {jnp.dtype(jnp.bfloat16): "bf16", jnp.dtype(jnp.float16): "fp16", jnp.dtype(jnp.float32): "fp32"}


def glu(
    x: jax.Array, gate: jax.Array, up: jax.Array, activation: str = "silu", *,
    bias_gate: jax.Array | None = None, bias_up: jax.Array | None = None, alpha: float = 1.0, limit: float = 0.0,
    up_offset: float = 0.0, rounding: str = "fp32", backend: str = "auto", kernel: str = "",
) -> jax.Array:  # fmt: skip
    """act(x gate^T + bias_gate) * (x up^T + bias_up), summed in fp32 and rounded once.

    x: [..., k]; gate, up: [n, k]; bias_gate, bias_up: [n], either alone or both; one dtype: bfloat16, float16 or float32.
    Returns [..., n] of that dtype.
    activation, alpha, limit, up_offset, rounding, backend, kernel: as in tileglu.glu. They are static: under jit their
    values are part of the program.
    vmap over x alone is one call with more rows; over weights or biases it is a call for each. Gradients are computed by
    recomputing gate and up in the arrays' dtype.
    Raises InvalidArgument or NotSupported at trace time for shapes, dtypes and names; what the library refuses when the
    program runs (a backend that is missing) is JAX's own error with the library's text.
    """
    x, gate, up = (jnp.asarray(array) for array in (x, gate, up))
    _check(x, gate, "gate", "[n, k]")
    _check(x, up, "up", "[n, k]")
    if up.shape != gate.shape:
        raise InvalidArgument(f"up has shape {list(up.shape)}, gate has {list(gate.shape)}; they must be equal")
    biases = _biases(x, gate.shape[0], bias_gate, bias_up)
    formula = _formula.fields_of(activation, alpha, limit, up_offset, rounding)
    return _glu(
        _static(activation, formula, LAYOUTS["separate"], biases, backend, kernel), x, gate, up, *biases.values()
    )


def glu_merged(
    x: jax.Array, gate_up: jax.Array, activation: str = "silu", order: str = "gate_up", *,
    bias_gate: jax.Array | None = None, bias_up: jax.Array | None = None, alpha: float = 1.0, limit: float = 0.0,
    up_offset: float = 0.0, rounding: str = "fp32", backend: str = "auto", kernel: str = "",
) -> jax.Array:  # fmt: skip
    """As glu, with one matrix gate_up [2n, k]; order as in tileglu.glu_merged."""
    layout = code(MERGED_ORDERS, order, "order")
    x, gate_up = jnp.asarray(x), jnp.asarray(gate_up)
    _check(x, gate_up, "gate_up", "[2n, k]")
    if gate_up.shape[0] % 2:
        raise InvalidArgument(f"gate_up has {gate_up.shape[0]} rows; it must have 2n, n for gate and n for up")
    biases = _biases(x, gate_up.shape[0] // 2, bias_gate, bias_up)
    formula = _formula.fields_of(activation, alpha, limit, up_offset, rounding)
    return _glu(_static(activation, formula, layout, biases, backend, kernel), x, gate_up, *biases.values())


def _check(x, weight, name, what):
    if x.dtype not in _DTYPES:
        raise NotSupported(f"x has dtype {x.dtype}; tileglu takes {', '.join(DTYPES)}")
    if x.ndim < 1:
        raise InvalidArgument("x has no dimension; it must be [..., k]")
    if weight.ndim != 2:
        raise InvalidArgument(f"{name} has shape {list(weight.shape)}; it must be a matrix {what}")
    if weight.dtype != x.dtype:
        raise InvalidArgument(f"{name} is {weight.dtype} and x is {x.dtype}; they must be of one dtype")
    if weight.shape[1] != x.shape[-1]:
        raise InvalidArgument(f"{name} has k={weight.shape[1]} columns, x has k={x.shape[-1]}")


def _biases(x, n, bias_gate, bias_up):
    """{name: array} of those that are given."""
    found = {}
    for name, bias in (("bias_gate", bias_gate), ("bias_up", bias_up)):
        if bias is not None:
            found[name] = bias = jnp.asarray(bias)
            if bias.shape != (n,):
                raise InvalidArgument(f"{name} has shape {list(bias.shape)}; it must be [{n}]")
            if bias.dtype != x.dtype:
                raise InvalidArgument(f"{name} is {bias.dtype} and x is {x.dtype}; they must be of one dtype")
    return found


class _Static(NamedTuple):
    """The static part of a call: hashable, and what the handler reads as attributes, but for the name."""

    activation_name: str
    activation: int
    layout: int
    rounding: int
    operands: int
    alpha: float
    limit: float
    up_offset: float
    backend: int
    kernel: str


def _static(activation, formula, layout, biases, backend, kernel):
    operands = sum(OPERANDS[name] for name in biases)
    return _Static(activation, layout=layout, operands=operands, backend=code(BACKENDS, backend, "backend"),
                   kernel=str(kernel), **formula)  # fmt: skip


# --- The call, and its rules for vmap and grad ------------------------------------------------------------------------


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _glu(static, x, *operands):
    return _batched(static)(x, *operands)


def _forward(static, x, *operands):
    return _glu(static, x, *operands), (x, operands)


def _backward(static, saved, d):
    x, operands = saved
    _, pull = jax.vjp(lambda *arrays: _unfused(static, *arrays), x, *operands)
    return pull(d)


_glu.defvjp(_forward, _backward)


@functools.lru_cache(maxsize=None)
def _batched(static):
    call = jax.custom_batching.custom_vmap(functools.partial(_call, static))

    @call.def_vmap
    def rule(size, batched, x, *operands):
        if batched[0] and not any(batched[1:]):
            return call(x, *operands), True
        arrays = [a if is_batched else jnp.broadcast_to(a, (size, *a.shape))
                  for a, is_batched in zip((x, *operands), batched)]  # fmt: skip
        return jax.lax.map(lambda one: call(*one), tuple(arrays)), True

    return call


def _call(static, x, *operands):
    n = operands[0].shape[0] // (1 if static.layout == LAYOUTS["separate"] else 2)
    result = jax.ShapeDtypeStruct((*x.shape[:-1], n), x.dtype)
    numbers = {int: np.int32, float: np.float32, str: str}
    attributes = {name: numbers[type(value)](value) for name, value in static._asdict().items()}
    del attributes["activation_name"]
    return jax.ffi.ffi_call(_TARGET, result)(x, *operands, **attributes)


def _unfused(static, x, *operands):
    """The same in plain JAX, for gradients."""
    if static.layout == LAYOUTS["separate"]:
        gate, up, *biases = operands
    else:
        (gate, up), biases = _split(operands[0], static.layout), operands[1:]
    biases = iter(biases)
    g, u = x @ gate.T, x @ up.T
    if static.operands & OPERANDS["bias_gate"]:
        g = g + next(biases)
    if static.operands & OPERANDS["bias_up"]:
        u = u + next(biases)
    if static.limit:
        g, u = jnp.minimum(g, static.limit), jnp.clip(u, -static.limit, static.limit)
    if static.activation_name == "swiglu":
        return g * jax.nn.sigmoid((static.alpha or 1) * g) * (u + static.up_offset)
    return _ACTIVATIONS[static.activation_name](g) * u


def _split(gate_up, layout):
    rows, k = gate_up.shape
    n = rows // 2
    if layout in (LAYOUTS["gate_up"], LAYOUTS["up_gate"]):
        first, second = gate_up[:n], gate_up[n:]
        return (first, second) if layout == LAYOUTS["gate_up"] else (second, first)
    group = 1 if layout == LAYOUTS["interleaved_1"] else 8
    grouped = gate_up.reshape(n // group, 2, group, k)
    return grouped[:, 0].reshape(n, k), grouped[:, 1].reshape(n, k)


_ACTIVATIONS = {
    "silu": jax.nn.silu,
    "gelu_tanh": lambda g: jax.nn.gelu(g, approximate=True),
    "gelu_erf": lambda g: jax.nn.gelu(g, approximate=False),
    "relu": jax.nn.relu,
    "sigmoid": jax.nn.sigmoid,
    "identity": lambda g: g,
}


# --- Registration -----------------------------------------------------------------------------------------------------


def _register():
    folder = os.path.dirname(_library.path())
    path = os.path.join(folder, _FILE_NAME) if folder else _FILE_NAME
    try:
        handlers = ctypes.CDLL(path)
        functions = {"cpu": handlers.tileglu_jax_cpu, "CUDA": handlers.tileglu_jax_cuda}
    except (OSError, AttributeError) as error:
        raise LibraryNotFound(
            f"tileglu was built without JAX, or for another version: {error}. Build it where jaxlib is installed"
        ) from None
    for platform, function in functions.items():
        jax.ffi.register_ffi_target(_TARGET, jax.ffi.pycapsule(function), platform=platform)


_register()
