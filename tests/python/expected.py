# SPDX-License-Identifier: Apache-2.0
"""Data, the exact result in fp64, and the error that an unfused computation makes on the same data."""

import math

import ml_dtypes
import numpy as np

BF16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = {"bf16": BF16, "fp16": np.dtype(np.float16), "fp32": np.dtype(np.float32)}

_erf = np.vectorize(math.erf, otypes=[np.float64])
ACTIVATIONS = {
    "silu": lambda g: g / (1 + np.exp(-g)),
    "gelu_tanh": lambda g: 0.5 * g * (1 + np.tanh(math.sqrt(2 / math.pi) * (g + 0.044715 * g**3))),
    "gelu_erf": lambda g: 0.5 * g * (1 + _erf(g / math.sqrt(2))),
    "relu": lambda g: np.maximum(g, 0),
    "sigmoid": lambda g: 1 / (1 + np.exp(-g)),
    "identity": lambda g: g,
}


def operands(m, n, k, dtype, seed=0):
    """x [m, k], gate [n, k], up [n, k]; up has another mean than gate, so that exchanging them shows."""
    random = np.random.default_rng(seed)
    x = random.standard_normal((m, k))
    gate = random.standard_normal((n, k)) / math.sqrt(k)
    up = random.standard_normal((n, k)) / math.sqrt(k) + 0.5 / k
    return tuple(array.astype(DTYPES[dtype]) for array in (x, gate, up))


def merged(gate, up, order):
    """The two weights as one matrix [2n, k] in a layout of tileglu.MERGED_ORDERS."""
    n, k = gate.shape
    if order == "gate_up":
        return np.concatenate([gate, up])
    if order == "up_gate":
        return np.concatenate([up, gate])
    group = int(order[-1])
    return np.stack([w.reshape(n // group, group, k) for w in (gate, up)], axis=1).reshape(2 * n, k)


def exact(x, gate, up, activation="silu"):
    """fp64 from the stored values."""
    x, gate, up = (np.asarray(array).astype(np.float64) for array in (x, gate, up))
    return ACTIVATIONS[activation](x @ gate.T) * (x @ up.T)


def unfused(x, gate, up, activation="silu"):
    """As model code computes it: gate, up, act(gate) and the product each rounded to the operands' dtype."""
    dtype = x.dtype
    g, u = ((x.astype(np.float32) @ w.astype(np.float32).T).astype(dtype).astype(np.float32) for w in (gate, up))
    return (ACTIVATIONS[activation](g).astype(dtype).astype(np.float32) * u).astype(dtype)


def error(y, wanted):
    """Relative Frobenius error."""
    return float(np.linalg.norm(np.asarray(y).astype(np.float64) - wanted) / np.linalg.norm(wanted))


def check(y, x, gate, up, activation="silu"):
    """Asserts that y is at least as near to the exact result as the unfused computation."""
    wanted = exact(x, gate, up, activation)
    assert y.shape == wanted.shape
    limit = error(unfused(x.reshape(-1, x.shape[-1]), gate, up, activation).reshape(wanted.shape), wanted)
    found = error(y, wanted)
    assert found <= 1.1 * limit + 1e-7, f"relative error {found:.3e}, unfused {limit:.3e}"
    if activation != "identity":  # which is symmetric
        assert error(exact(x, up, gate, activation), wanted) > 20 * limit, "the data cannot tell gate from up"
