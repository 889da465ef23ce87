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


# What a call has besides x, the weights and an activation: operands by name, and numbers of swiglu whose clamps bite.
GPT_OSS = {"activation": "swiglu", "alpha": 1.702, "limit": 0.75, "up_offset": 1.0}
FORMULAS = {
    "bias on gate": (["bias_gate"], {}),
    "bias on up": (["bias_up"], {"activation": "relu"}),
    "both biases": (["bias_gate", "bias_up"], {"activation": "gelu_tanh"}),
    "swiglu": ([], GPT_OSS),
    "swiglu without limit": ([], {"activation": "swiglu", "alpha": 0.5, "up_offset": -0.25}),
    "swiglu and both biases": (["bias_gate", "bias_up"], GPT_OSS),
    "addend": (["add_gate", "add_up"], {}),
    "all": (["bias_gate", "bias_up", "add_gate", "add_up"], GPT_OSS),
}


def formula(name, m, n, dtype):
    """(arrays by name, numbers and activation) of one of FORMULAS; no two arrays are alike."""
    names, numbers = FORMULAS[name]
    random = np.random.default_rng(len(name))
    shapes = {"bias": (n,), "add": (m, n)}
    arrays = {one: (random.standard_normal(shapes[one.partition("_")[0]]) + i).astype(DTYPES[dtype])
              for i, one in enumerate(names)}  # fmt: skip
    return arrays, {"activation": "silu", **numbers}


def _sums(x, gate, up, kind, bias_gate=0, bias_up=0, add_gate=0, add_up=0):
    """gate and up before the activation, in float type `kind`."""
    x, *others = (np.asarray(a).astype(kind) for a in (x, gate, up, bias_gate, bias_up, add_gate, add_up))
    gate, up, bias_gate, bias_up, add_gate, add_up = others
    return x @ gate.T + bias_gate + add_gate, x @ up.T + bias_up + add_up


def steps(g, u, rounded, activation="silu", alpha=1.0, limit=0.0, up_offset=0.0):
    """act(g) * u, each step through `rounded`."""
    if activation != "swiglu":
        return rounded(rounded(ACTIVATIONS[activation](g)) * u)
    one = g.dtype.type
    if limit:
        g, u = rounded(np.minimum(g, one(limit))), rounded(np.clip(u, -one(limit), one(limit)))
    sigmoid = rounded(1 / (1 + np.exp(-rounded(one(alpha) * g))))
    return rounded(rounded(g * sigmoid) * rounded(u + one(up_offset)))


def exact(x, gate, up, activation="silu", alpha=1.0, limit=0.0, up_offset=0.0, **operands):
    """fp64 from the stored values."""
    g, u = _sums(x, gate, up, np.float64, **operands)
    return steps(g, u, lambda a: a, activation, alpha, limit, up_offset)


def to(dtype):
    """Rounds to a dtype and back to fp32."""
    return lambda a: np.asarray(a).astype(dtype).astype(np.float32)


def unfused(x, gate, up, activation="silu", alpha=1.0, limit=0.0, up_offset=0.0, **operands):
    """As model code computes it: gate, up, act(gate) and the product each rounded to the operands' dtype."""
    rounded = to(x.dtype)
    g, u = map(rounded, _sums(x, gate, up, np.float32, **operands))
    return steps(g, u, rounded, activation, alpha, limit, up_offset).astype(x.dtype)


def error(y, wanted):
    """Relative Frobenius error."""
    return float(np.linalg.norm(np.asarray(y).astype(np.float64) - wanted) / np.linalg.norm(wanted))


def check(y, x, gate, up, activation="silu", **how):
    """Asserts that y is at least as near to the exact result as the unfused computation, but for the order of the sums in
    fp32, in which libraries differ. how: numbers and operands."""
    wanted = exact(x, gate, up, activation, **how)
    assert y.shape == wanted.shape
    limit = error(unfused(x.reshape(-1, x.shape[-1]), gate, up, activation, **how).reshape(wanted.shape), wanted)
    found = error(y, wanted)
    order_of_sums = 2**-24 * x.shape[-1] ** 0.5
    assert found <= 1.1 * limit + order_of_sums, f"relative error {found:.3e}, unfused {limit:.3e}"
    if activation != "identity":  # which is symmetric
        assert error(exact(x, up, gate, activation, **how), wanted) > 20 * limit, "the data cannot tell gate from up"
    for name in how:  # nor be without one of them
        less = {**how, name: 0 if name in OPERAND_NAMES else {"alpha": 1.0}.get(name, 0.0)}
        assert error(exact(x, gate, up, activation, **less), wanted) > 4 * limit, f"the data cannot tell {name}"


OPERAND_NAMES = "bias_gate", "bias_up", "add_gate", "add_up"
