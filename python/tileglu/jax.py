# SPDX-License-Identifier: Apache-2.0
"""JAX: glu and glu_merged as XLA custom calls, under jit, vmap, grad and on CPU and CUDA devices.

Importing this module registers the handlers of libtileglu_jax, a small library beside libtileglu. It is there if the
headers of jaxlib were found when tileglu was built; without it the import fails with LibraryNotFound.
"""

from __future__ import annotations

import ctypes
import functools
import os

import jax
import jax.numpy as jnp
import numpy as np

from . import _library
from ._errors import InvalidArgument, LibraryNotFound, NotSupported
from ._names import ACTIVATIONS, BACKENDS, DTYPES, LAYOUTS, MERGED_ORDERS, code

__all__ = ["glu", "glu_merged"]

_TARGET = "tileglu"
_FILE_NAME = "libtileglu_jax.so"
_DTYPES = {jnp.dtype(jnp.bfloat16): "bf16", jnp.dtype(jnp.float16): "fp16", jnp.dtype(jnp.float32): "fp32"}


def glu(
    x: jax.Array, gate: jax.Array, up: jax.Array, activation: str = "silu",
    *, backend: str = "auto", kernel: str = "",
) -> jax.Array:  # fmt: skip
    """act(x gate^T) * (x up^T), summed in fp32 and rounded once.

    x: [..., k]; gate, up: [n, k]; one dtype: bfloat16, float16 or float32. Returns [..., n] of that dtype.
    activation, backend, kernel: as in tileglu.glu. They are static: under jit their values are part of the program.
    vmap over x alone is one call with more rows; over weights it is a call for each. Gradients are computed by
    recomputing gate and up in the arrays' dtype.
    Raises InvalidArgument or NotSupported at trace time for shapes, dtypes and names; what the library refuses when the
    program runs (a backend that is missing) is JAX's own error with the library's text.
    """
    x, gate, up = (jnp.asarray(array) for array in (x, gate, up))
    _check(x, gate, "gate", "[n, k]")
    _check(x, up, "up", "[n, k]")
    if up.shape != gate.shape:
        raise InvalidArgument(f"up has shape {list(up.shape)}, gate has {list(gate.shape)}; they must be equal")
    return _glu(_names(activation, LAYOUTS["separate"], backend, kernel), x, gate, up)


def glu_merged(
    x: jax.Array, gate_up: jax.Array, activation: str = "silu", order: str = "gate_up",
    *, backend: str = "auto", kernel: str = "",
) -> jax.Array:  # fmt: skip
    """As glu, with one matrix gate_up [2n, k]; order as in tileglu.glu_merged."""
    layout = code(MERGED_ORDERS, order, "order")
    x, gate_up = jnp.asarray(x), jnp.asarray(gate_up)
    _check(x, gate_up, "gate_up", "[2n, k]")
    if gate_up.shape[0] % 2:
        raise InvalidArgument(f"gate_up has {gate_up.shape[0]} rows; it must have 2n, n for gate and n for up")
    return _glu(_names(activation, layout, backend, kernel), x, gate_up)


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


def _names(activation, layout, backend, kernel):
    """The static part of a call: hashable, and what the handler reads as attributes."""
    code(ACTIVATIONS, activation, "activation")
    return activation, layout, code(BACKENDS, backend, "backend"), str(kernel)


# --- The call, and its rules for vmap and grad ------------------------------------------------------------------------


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _glu(names, x, *weights):
    return _batched(names)(x, *weights)


def _forward(names, x, *weights):
    return _glu(names, x, *weights), (x, weights)


def _backward(names, saved, d):
    x, weights = saved
    _, pull = jax.vjp(lambda *operands: _unfused(names, *operands), x, *weights)
    return pull(d)


_glu.defvjp(_forward, _backward)


@functools.lru_cache(maxsize=None)
def _batched(names):
    call = jax.custom_batching.custom_vmap(functools.partial(_call, names))

    @call.def_vmap
    def rule(size, batched, x, *weights):
        if batched[0] and not any(batched[1:]):
            return call(x, *weights), True
        operands = [a if is_batched else jnp.broadcast_to(a, (size, *a.shape))
                    for a, is_batched in zip((x, *weights), batched)]  # fmt: skip
        return jax.lax.map(lambda one: call(*one), tuple(operands)), True

    return call


def _call(names, x, *weights):
    activation, layout, backend, kernel = names
    n = weights[0].shape[0] // (1 if layout == LAYOUTS["separate"] else 2)
    result = jax.ShapeDtypeStruct((*x.shape[:-1], n), x.dtype)
    numbers = {"activation": ACTIVATIONS[activation], "layout": layout, "backend": backend}
    attributes = {name: np.int32(value) for name, value in numbers.items()}
    return jax.ffi.ffi_call(_TARGET, result)(x, *weights, kernel=kernel, **attributes)


def _unfused(names, x, *weights):
    """The same in plain JAX, for gradients."""
    activation, layout, *_ = names
    gate, up = weights if layout == LAYOUTS["separate"] else _split(weights[0], layout)
    return _ACTIVATIONS[activation](x @ gate.T) * (x @ up.T)


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
