# SPDX-License-Identifier: Apache-2.0
"""tileglu.jax: values, jit, vmap, gradients, refusals; on the CPU, and on a GPU where JAX has one."""

import numpy as np
import pytest

import expected
import tileglu

jax = pytest.importorskip("jax", reason="jax is not installed")
jnp = jax.numpy
try:
    import tileglu.jax as tileglu_jax
except tileglu.LibraryNotFound as error:
    pytest.skip(str(error), allow_module_level=True)

SIZE = (7, 40, 64)


def gpus():
    try:
        return jax.devices("cuda")
    except RuntimeError:
        return []


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)], autouse=True)
def device(request):
    """Every test runs on each platform that JAX has here."""
    if request.param == "cuda" and not gpus():
        pytest.skip("jax has no CUDA device")
    with jax.default_device(jax.devices(request.param)[0]):
        yield request.param


def operands(dtype="fp32", size=SIZE):
    return tuple(map(jnp.asarray, expected.operands(*size, dtype)))


@pytest.mark.parametrize("dtype", expected.DTYPES)
@pytest.mark.parametrize("activation", expected.ACTIVATIONS)
def test_values(device, activation, dtype):
    if device == "cuda" and (dtype, activation) != ("bf16", "silu"):
        tileglu_or_skip(dtype, activation)
    x, gate, up = operands(dtype)
    y = tileglu_jax.glu(x, gate, up, activation)
    assert y.dtype == x.dtype and y.devices() == x.devices()
    expected.check(np.asarray(y), *map(np.asarray, (x, gate, up)), activation)
    again = jax.jit(tileglu_jax.glu, static_argnames="activation")(x, gate, up, activation)
    assert np.array_equal(np.asarray(again), np.asarray(y))


def tileglu_or_skip(dtype, activation, **problem):
    possible, reason = tileglu.can_implement(*SIZE, dtype=dtype, activation=activation, **problem)
    if not possible:
        pytest.skip(reason)


FORMULAS = [name for name in expected.FORMULAS if name not in ("addend", "all")]  # JAX has no addend


def formula(name, dtype, n=SIZE[1]):
    """(biases in NumPy, biases in JAX, numbers and activation)"""
    biases, numbers = expected.formula(name, SIZE[0], n, dtype)
    return biases, {key: jnp.asarray(value) for key, value in biases.items()}, numbers


@pytest.mark.parametrize("dtype", expected.DTYPES)
@pytest.mark.parametrize("name", FORMULAS)
def test_biases_and_swiglu(device, name, dtype):
    biases, given, numbers = formula(name, dtype)
    if device == "cuda":
        tileglu_or_skip(dtype, operands=list(biases), **numbers)
    x, gate, up = operands(dtype)
    arrays = tuple(map(np.asarray, (x, gate, up)))
    y = jax.jit(lambda *a, **b: tileglu_jax.glu(*a, **b, **numbers))(x, gate, up, **given)
    expected.check(np.asarray(y), *arrays, **numbers, **biases)
    gate_up = jnp.asarray(expected.merged(*arrays[1:], "up_gate"))
    merged = tileglu_jax.glu_merged(x, gate_up, order="up_gate", **given, **numbers)
    assert np.array_equal(np.asarray(merged), np.asarray(y))


def test_rounding():
    if tileglu.backends()["cpu"] is not None:
        pytest.skip(tileglu.backends()["cpu"])
    x, gate, up = operands("bf16")
    wanted = np.asarray(tileglu.glu(*map(np.asarray, (x, gate, up)), rounding="unfused"))
    found = np.asarray(tileglu_jax.glu(x, gate, up, rounding="unfused"))
    once = np.asarray(tileglu_jax.glu(x, gate, up))
    assert (found == wanted).mean() > 0.95 > (once == wanted).mean()


def test_vmap_with_biases():
    _, given, numbers = formula("swiglu and both biases", "bf16")
    x, gate, up = operands("bf16")
    function = jax.jit(jax.vmap(lambda row: tileglu_jax.glu(row, gate, up, **given, **numbers)))
    assert function.lower(x).as_text().count("@tileglu") == 1
    assert np.array_equal(function(x), tileglu_jax.glu(x, gate, up, **given, **numbers))


@pytest.mark.parametrize("name", FORMULAS)
def test_gradients_of_biases_and_swiglu(device, name):
    if device == "cuda":
        pytest.skip("the backward pass is plain JAX")
    _, given, numbers = formula(name, "fp32")
    x, gate, up = operands("fp32")
    exact = {key: np.asarray(value, np.float64) for key, value in {"x": x, "gate": gate, "up": up, **given}.items()}
    loss = lambda arrays: tileglu_jax.glu(**arrays, **numbers).sum()  # noqa: E731
    found = jax.grad(loss)({"x": x, "gate": gate, "up": up, **given})
    direction = np.random.default_rng(5)
    for key, value in exact.items():
        step = 1e-6 * direction.standard_normal(value.shape)
        ends = [expected.exact(**{**exact, key: value + sign * step}, **numbers).sum() for sign in (1, -1)]
        wanted = (ends[0] - ends[1]) / 2
        assert (np.asarray(found[key], np.float64) * step).sum() == pytest.approx(wanted, rel=1e-3, abs=1e-9), key


@pytest.mark.parametrize("order", tileglu.MERGED_ORDERS)
def test_merged(order):
    x, gate, up = operands("bf16")
    gate_up = jnp.asarray(expected.merged(np.asarray(gate), np.asarray(up), order))
    y = jax.jit(lambda *a: tileglu_jax.glu_merged(*a, order=order))(x, gate_up)
    expected.check(np.asarray(y), *map(np.asarray, (x, gate, up)))


def test_which_one_is_the_gate():
    one = jnp.ones((1, 8), jnp.bfloat16).at[:, 1:].set(0)
    assert float(tileglu_jax.glu(one, one, 2 * one)[0, 0]) == pytest.approx(1.46212, rel=2**-8)


def test_leading_dimensions_and_no_tokens():
    x, gate, up = operands("bf16", (24, 40, 64))
    wanted = np.asarray(tileglu_jax.glu(x, gate, up))
    y = tileglu_jax.glu(x.reshape(2, 3, 4, 64), gate, up)
    assert np.array_equal(np.asarray(y).reshape(24, 40), wanted)
    assert tileglu_jax.glu(x[0], gate, up).shape == (40,)
    assert tileglu_jax.glu(x[:0].reshape(2, 0, 64), gate, up).shape == (2, 0, 40)


def test_vmap_over_tokens_is_one_call():
    x, gate, up = operands("bf16", (24, 40, 64))
    function = jax.vmap(jax.vmap(lambda row: tileglu_jax.glu(row, gate, up)))
    batched = x.reshape(2, 12, 64)
    assert np.array_equal(function(batched).reshape(24, 40), tileglu_jax.glu(x, gate, up))
    assert jax.jit(function).lower(batched).as_text().count("@tileglu") == 1
    other_axis = jax.vmap(lambda row: tileglu_jax.glu(row, gate, up), in_axes=1, out_axes=1)(x.T)
    assert np.array_equal(other_axis.T, tileglu_jax.glu(x, gate, up))


def test_vmap_over_weights():
    x, gate, up = operands("bf16")
    gates = jnp.stack([gate, up])
    y = jax.jit(jax.vmap(tileglu_jax.glu, in_axes=(None, 0, None)))(x, gates, up)
    for one, weight in zip(y, gates):
        assert np.array_equal(one, tileglu_jax.glu(x, weight, up))


@pytest.mark.parametrize("activation", expected.ACTIVATIONS)
def test_gradients(device, activation):
    if device == "cuda":
        pytest.skip("the backward pass is plain JAX")
    x, gate, up = operands("fp32")
    plain = {
        "silu": jax.nn.silu,
        "gelu_tanh": jax.nn.gelu,
        "gelu_erf": lambda g: jax.nn.gelu(g, approximate=False),
        "relu": jax.nn.relu,
        "sigmoid": jax.nn.sigmoid,
        "identity": lambda g: g,
    }[activation]

    def wanted(x, gate, up):
        return (plain(x @ gate.T) * (x @ up.T)).sum()

    def ours(*arrays):
        return tileglu_jax.glu(*arrays, activation).sum()

    def ours_merged(x, gate, up):
        order = jnp.stack([gate, up], axis=1).reshape(-1, gate.shape[1])
        return tileglu_jax.glu_merged(x, order, activation, "interleaved_1").sum()

    for function in (ours, ours_merged, jax.jit(ours)):
        for one, other in zip(jax.grad(function, (0, 1, 2))(x, gate, up), jax.grad(wanted, (0, 1, 2))(x, gate, up)):
            assert np.allclose(one, other, rtol=1e-4, atol=1e-5)


REFUSED = {
    "dtypes differ": (lambda x, g, u: (x, g.astype(jnp.float16), u), "gate is float16 and x is float32"),
    "int": (lambda x, g, u: (x.astype(jnp.int32), g, u), "x has dtype int32"),
    "depths differ": (lambda x, g, u: (x, g, u[:, :63]), "up has k=63 columns, x has k=64"),
    "shapes differ": (lambda x, g, u: (x, g, u[:39]), r"up has shape \[39, 64\]"),
    "no matrix": (lambda x, g, u: (x, g[0], u), r"gate has shape \[64\]"),
    "no dimension": (lambda x, g, u: (x[0, 0], g, u), "x has no dimension"),
    "bias of another length": (lambda x, g, u: (x, g, u, "silu", g[:3, 0]), r"bias_gate has shape \[3\]"),
    "bias of another dtype": (lambda x, g, u: (x, g, u, "silu", g[:, 0].astype(jnp.float16)), "bias_gate is float16"),
    "activation": (lambda x, g, u: (x, g, u, "swish"), "activation='swish' is none of"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_when_traced(name):
    change, text = REFUSED[name]
    with pytest.raises((tileglu.InvalidArgument, tileglu.NotSupported), match=text):
        *arguments, bias = change(*operands())
        if len(arguments) == 4:
            tileglu_jax.glu(*arguments, bias_gate=bias)
        tileglu_jax.glu(*arguments, bias)


def test_refused_when_run_with_the_librarys_words(device):
    with pytest.raises(Exception, match="kernel=no_such|no_such"):
        jax.block_until_ready(jax.jit(lambda *a: tileglu_jax.glu(*a, kernel="no_such"))(*operands("bf16")))
    x, gate, up = operands("bf16")
    expected.check(np.asarray(tileglu_jax.glu(x, gate, up)), *map(np.asarray, (x, gate, up)))


def test_arrays_of_jax_go_to_the_plain_function_too():
    x, gate, up = operands("bf16")
    out = np.empty((7, 40), expected.BF16)
    if x.devices() == {jax.devices("cpu")[0]}:
        expected.check(tileglu.glu(x, gate, up, out=out), *map(np.asarray, (x, gate, up)))
        with pytest.raises(tileglu.InvalidArgument, match="out is read-only"):
            tileglu.glu(x, gate, up, out=jnp.zeros((7, 40), jnp.bfloat16))
