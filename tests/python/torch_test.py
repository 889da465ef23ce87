# SPDX-License-Identifier: Apache-2.0
"""torch tensors: values, op checks, torch.compile, gradients, autocast."""

import pytest

import expected
import tileglu

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch.nn import functional as F  # noqa: E402

import tileglu.torch  # noqa: E402, F401 (which registers the ops)
from torch_formula import ACTIVATIONS, SWIGLU, in_torch  # noqa: E402

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


def operands(m, n, k, dtype="fp32", seed=0):
    return tuple(
        torch.from_numpy(a.astype("float32")).to(DTYPES[dtype]) for a in expected.operands(m, n, k, dtype, seed)
    )


def as_numpy(tensor):
    return (
        tensor.detach().float().numpy().astype(expected.BF16)
        if tensor.dtype == torch.bfloat16
        else tensor.detach().numpy()
    )


def check(y, x, gate, up, activation="silu"):
    expected.check(as_numpy(y), *(as_numpy(t) for t in (x, gate, up)), activation)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_values(dtype, activation):
    x, gate, up = operands(7, 40, 64, dtype)
    y = tileglu.glu(x, gate, up, activation)
    assert y.dtype == x.dtype and y.is_contiguous() and not y.requires_grad
    check(y, x, gate, up, activation)
    assert torch.equal(y, torch.ops.tileglu.glu(x, gate, up, activation))
    assert torch.equal(y, tileglu.glu_merged(x, torch.cat([gate, up]), activation))
    assert torch.equal(y, torch.ops.tileglu.glu_merged(x, torch.cat([up, gate]), activation, "up_gate"))
    out = torch.empty_like(y)
    assert tileglu.glu(x, gate, up, activation, out=out) is out and torch.equal(out, y)


def inputs_of_many_strides():
    full = torch.randn(2, 8, 96, generator=torch.Generator().manual_seed(1))
    rows = full[..., :64]
    return {
        "contiguous": rows.contiguous(),
        "row stride": rows,
        "slice of the middle": rows[:, 3:],
        "leading dimensions exchanged": rows.transpose(0, 1),
        "transposed": torch.randn(64, 5).t(),
        "expanded": rows[:1, :1].expand(2, 5, 64),
        "no tokens": rows[:, :0],
        "one token": rows[0, 0],
        "huge stride of one row": torch.as_strided(full, (1, 64), (2**31 + 8, 1)),
        "stride 1 of one row": torch.as_strided(full, (1, 64), (1, 1)),
    }


@pytest.mark.parametrize("name", inputs_of_many_strides())
def test_c07_c08_c14_strides_and_opcheck(name):
    x = inputs_of_many_strides()[name]
    _, gate, up = operands(1, 36, 64)
    if x.numel():
        check(tileglu.glu(x, gate, up), x, gate, up)
    torch.library.opcheck(torch.ops.tileglu.glu.default, (x, gate, up))
    torch.library.opcheck(torch.ops.tileglu.glu_merged.default, (x, torch.cat([gate, up]), "gelu_tanh", "up_gate"))
    out = torch.empty(*x.shape[:-1], 36)
    torch.library.opcheck(torch.ops.tileglu.glu_out.default, (x, gate, up), {"out": out})
    merged_out = torch.ops.tileglu.glu_merged_out.default
    torch.library.opcheck(merged_out, (x, torch.cat([gate, up]), "silu", "up_gate"), {"out": out})


def added(m, n, names, seed=3):
    """Operands by name, leaves that require gradients."""
    random = torch.Generator().manual_seed(seed)
    shapes = {"bias": (n,), "add": (m, n)}
    return {name: torch.randn(shapes[name.partition("_")[0]], generator=random).requires_grad_() for name in names}


ADDED = {
    "bias_gate": (["bias_gate"], {}),
    "bias_up": (["bias_up"], {"activation": "gelu_tanh"}),
    "swiglu": ([], SWIGLU),
    "swiglu without limit": ([], {"activation": "swiglu", "alpha": 0.5, "up_offset": -0.25}),
    "all": (["bias_gate", "bias_up", "add_gate", "add_up"], SWIGLU),
}


@pytest.mark.parametrize("name", ADDED)
@pytest.mark.parametrize("order", ["separate", "up_gate", "interleaved_8"])
def test_c17_gradients_of_biases_addend_and_swiglu(name, order):
    from tileglu._gradients import _join

    names, how = ADDED[name]
    x, gate, up = (t.requires_grad_() for t in operands(10, 24, 32))
    more = added(10, 24, names)
    if order == "separate":
        y = tileglu.glu(x, gate, up, **more, **how)
    else:
        y = tileglu.glu_merged(x, _join(gate, up, order), order=order, **more, **how)
    inputs, d = (x, gate, up, *more.values()), torch.randn(10, 24)
    exact = [t.detach().double().requires_grad_() for t in inputs]
    wanted = torch.autograd.grad(in_torch(*exact[:3], **dict(zip(names, exact[3:])), **how), exact, d.double())
    for which, mine, right in zip(("x", "gate", "up", *names), torch.autograd.grad(y, inputs, d), wanted):
        assert right.norm() > 0.1 and (mine.double() - right).norm() <= 1e-6 * right.norm(), which


def test_c17_only_a_bias_needs_a_gradient():
    x, gate, up = operands(5, 24, 32)
    bias = added(5, 24, ["bias_up"])["bias_up"]
    (found,) = torch.autograd.grad(tileglu.glu(x, gate, up, bias_up=bias).sum(), bias)
    assert torch.allclose(found, F.silu(F.linear(x, gate)).sum(0), atol=1e-5)


@pytest.mark.parametrize("name", ADDED)
def test_opcheck_and_compile_with_biases_addend_and_swiglu(name):
    torch._dynamo.reset()
    names, how = ADDED[name]
    x, gate, up = (t.requires_grad_() for t in operands(5, 24, 32))
    more = added(5, 24, names)
    torch.library.opcheck(torch.ops.tileglu.glu.default, (x, gate, up), {**more, **how})
    detached = {key: t.detach() for key, t in more.items()}
    merged = torch.cat([gate, up]).detach()
    out = {"out": torch.empty(5, 24)}
    torch.library.opcheck(torch.ops.tileglu.glu_merged_out.default, (x.detach(), merged), {**detached, **how, **out})
    compiled = torch.compile(lambda x: tileglu.glu(x, gate, up, **more, **how).square().sum(), fullgraph=True,
                             backend="aot_eager")  # fmt: skip
    inputs = (x, gate, up, *more.values())
    wanted = torch.autograd.grad(tileglu.glu(x, gate, up, **more, **how).square().sum(), inputs)
    for mine, right in zip(torch.autograd.grad(compiled(x), inputs), wanted):
        assert torch.allclose(mine, right, rtol=1e-5, atol=1e-5)


def test_autocast_casts_biases_and_the_rounding_is_part_of_the_op():
    x, gate, up = operands(5, 24, 32)
    bias = added(5, 24, ["bias_gate"])["bias_gate"].detach()
    with torch.autocast("cpu", torch.bfloat16):
        y = tileglu.glu(x, gate, up, bias_gate=bias, rounding="unfused")
    x, gate, up, bias = (t.bfloat16() for t in (x, gate, up, bias))
    assert torch.equal(y, tileglu.glu(x, gate, up, bias_gate=bias, rounding="unfused"))
    assert not torch.equal(y, tileglu.glu(x, gate, up, bias_gate=bias))


def test_preactivations_are_refused_where_they_would_get_lost():
    x, gate, up = operands(5, 24, 32)
    pre = {"pre_gate": torch.full((5, 24), 3.0), "pre_up": torch.full((5, 24), 3.0)}
    with pytest.raises(tileglu.NotSupported, match="pre_gate and pre_up"):
        tileglu.glu(x, gate.requires_grad_(), up, **pre)
    assert all((t == 3).all() for t in pre.values())
    with torch.no_grad():
        tileglu.glu(x, gate, up, **pre)
    assert torch.allclose(pre["pre_up"], F.linear(x, up), atol=1e-5)


def test_a_warm_call_is_not_taken_for_another():
    """What is kept of a call answers only calls that are like it in all that matters, from whatever state."""
    x, gate, up = operands(4, 8, 8)
    wanted = tileglu.glu(x, gate, up)
    for _ in range(3):
        assert torch.equal(tileglu.glu(x, gate, up), wanted)
    weight = gate.clone()
    tileglu.glu(x, weight, up)
    weight.data = gate.t()  # the same object and sizes with other strides
    with pytest.raises(tileglu.InvalidArgument, match="gate of shape .* has strides"):
        tileglu.glu(x, weight, up)
    weight.data = gate[:4]
    with pytest.raises(tileglu.InvalidArgument, match="up has shape"):
        tileglu.glu(x, weight, up)
    assert torch.equal(tileglu.glu(x.t().contiguous().t(), gate, up), wanted)
    assert tileglu.glu(x, gate.clone().requires_grad_(), up).grad_fn is not None
    with pytest.raises(tileglu.InvalidArgument, match="up is fp64|up has dtype|up is bf16"):
        tileglu.glu(x, gate, up.bfloat16())
    with torch.autocast("cpu", torch.bfloat16):
        assert tileglu.glu(x, gate, up).dtype == torch.bfloat16
    with torch.inference_mode():
        assert tileglu.glu(x, gate, up).is_inference() and torch.equal(tileglu.glu(x, gate, up), wanted)
    with pytest.raises((tileglu.Error, RuntimeError)):
        tileglu.glu(x, gate.to("meta"), up)
    assert torch.equal(tileglu.glu(x, gate, gate), tileglu.glu(x, gate, gate.clone()))
    result = tileglu.glu(x, gate, up)
    assert result.data_ptr() != wanted.data_ptr() and torch.equal(result, wanted)


def test_opcheck_with_gradients():
    x, gate, up = (t.requires_grad_() for t in operands(5, 24, 32))
    torch.library.opcheck(torch.ops.tileglu.glu.default, (x, gate, up))
    merged = torch.cat([gate, up]).detach().requires_grad_()
    torch.library.opcheck(torch.ops.tileglu.glu_merged.default, (x, merged, "silu", "interleaved_8"))


def test_c14_compile_full_graph_and_dynamic():
    torch._dynamo.reset()
    _, gate, up = operands(1, 40, 64)
    from torch._dynamo.testing import CompileCounter

    counter = CompileCounter()
    function = lambda x: tileglu.glu(x, gate, up) * 2 + tileglu.glu_merged(x, torch.cat([gate, up]))  # noqa: E731
    compiled = torch.compile(function, fullgraph=True, dynamic=True, backend=counter)
    through_aot = torch.compile(function, fullgraph=True, dynamic=True, backend="aot_eager")
    for m in (7, 1, 2, 128, 33, 0):
        x = torch.randn(m, 64)
        assert torch.equal(compiled(x), function(x))
        assert torch.equal(through_aot(x), function(x))
    assert counter.frame_count <= 3  # 0, 1 and the rest


def test_c14_compiled_call_on_a_slice_has_the_strides_of_the_fake():
    torch._dynamo.reset()
    _, gate, up = operands(1, 40, 64)
    compiled = torch.compile(lambda x: tileglu.glu(x, gate, up).relu(), fullgraph=True, backend="aot_eager")
    x = torch.randn(2, 8, 64)[:, 3:]
    y = compiled(x)
    assert y.stride() == (200, 40, 1) and torch.equal(y, tileglu.glu(x, gate, up).relu())


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("order", ["separate", *tileglu.MERGED_ORDERS])
def test_c17_gradients(activation, order):
    from tileglu._gradients import _join

    x, gate, up = (t.requires_grad_() for t in operands(10, 24, 32))
    x3 = x.reshape(2, 5, 32)
    if order == "separate":
        y = tileglu.glu(x3, gate, up, activation)
    else:
        y = tileglu.glu_merged(x3, _join(gate, up, order), activation, order)
    d = torch.randn(y.shape)
    found = torch.autograd.grad(y, (x, gate, up), d)
    exact = [t.detach().double().requires_grad_() for t in (x, gate, up)]
    y = ACTIVATIONS[activation](F.linear(exact[0], exact[1])) * F.linear(exact[0], exact[2])
    for name, mine, wanted in zip(
        ("x", "gate", "up"), found, torch.autograd.grad(y, exact, d.double().reshape(10, 24))
    ):
        assert (mine.double() - wanted).norm() <= 1e-6 * wanted.norm(), name


def test_c17_frozen_weights_and_frozen_input():
    x, gate, up = operands(5, 24, 32)
    assert tileglu.glu(x, gate, up).grad_fn is None
    x.requires_grad_()
    tileglu.glu(x, gate, up).sum().backward()
    assert x.grad.abs().sum() > 0 and gate.grad is None
    x, up = x.detach(), up.requires_grad_()
    tileglu.glu(x, gate, up).sum().backward()
    assert up.grad.abs().sum() > 0 and gate.grad is None
    with torch.inference_mode():
        assert not tileglu.glu(x, gate, up).requires_grad


def test_c17_out_never_loses_a_gradient():
    x, gate, up = operands(5, 24, 32)
    out = torch.full((5, 24), 3.0)
    for call in (
        lambda: tileglu.glu(x.requires_grad_(), gate, up, out=out),
        lambda: torch.ops.tileglu.glu_out(x.requires_grad_(), gate, up, out=out),
        lambda: tileglu.glu(x.detach(), gate, up, bias_up=torch.zeros(24, requires_grad=True), out=out),
        lambda: tileglu.glu_merged(x.requires_grad_(), torch.cat([gate, up]), out=out),
    ):
        with pytest.raises(tileglu.NotSupported, match="no gradients"):
            call()
    assert (out == 3).all()


def test_training_through_compile():
    torch._dynamo.reset()
    x, gate, up = (t.requires_grad_() for t in operands(5, 24, 32))
    compiled = torch.compile(lambda *a: tileglu.glu(*a).square().sum(), fullgraph=True, backend="aot_eager")
    found = torch.autograd.grad(compiled(x, gate, up), (x, gate, up))
    for mine, wanted in zip(found, torch.autograd.grad(tileglu.glu(x, gate, up).square().sum(), (x, gate, up))):
        assert torch.allclose(mine, wanted, rtol=1e-5, atol=1e-6)


def test_c17_autocast_casts_as_linear_does():
    x, gate, up = operands(5, 24, 32)
    with torch.autocast("cpu", torch.bfloat16):
        y = tileglu.glu(x, gate, up)
        assert y.dtype == F.linear(x, gate).dtype == torch.bfloat16
        assert torch.equal(y, tileglu.glu(x.bfloat16(), gate, up))
        assert torch.ops.tileglu.glu(x.bfloat16(), gate, up).dtype == torch.bfloat16
        weight = gate.clone().requires_grad_()
        tileglu.glu(x, weight, up).sum().backward()
        assert weight.grad.dtype == torch.float32
    with pytest.raises(tileglu.InvalidArgument, match="gate is fp32 and x is bf16"):
        tileglu.glu(x.bfloat16(), gate, up)


def test_fake_and_meta_tensors():
    from torch._subclasses.fake_tensor import FakeTensorMode

    x, gate, up = operands(5, 24, 32, "bf16")
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert tileglu.glu(torch.empty(2, 5, 32, dtype=torch.bfloat16), gate, up).shape == (2, 5, 24)
    with pytest.raises((NotImplementedError, RuntimeError, tileglu.NotSupported)):
        tileglu.glu(x.to_sparse(), gate, up)


def test_vmap_is_no_silent_nonsense():
    x, gate, up = operands(6, 24, 32)
    try:
        y = torch.func.vmap(lambda row: tileglu.glu(row, gate, up))(x)
    except (RuntimeError, NotImplementedError):
        return
    assert torch.allclose(y, tileglu.glu(x, gate, up), atol=1e-6)


def test_mixed_devices_and_shapes_are_refused():
    x, gate, up = operands(5, 24, 32)
    with pytest.raises((tileglu.Error, RuntimeError)):
        tileglu.glu(x, gate.to("meta"), up)
    with pytest.raises(tileglu.InvalidArgument, match="k=32 columns, x has k=31"):
        tileglu.glu(x[:, :31], gate, up)


def test_overhead_of_a_warm_call(record_property):
    from threads_test import microseconds

    x, gate, up = torch.empty(0, 64), torch.empty(40, 64), torch.empty(40, 64)
    out = torch.empty(0, 40)
    found = {
        "torch": microseconds(lambda: tileglu.glu(x, gate, up)),
        "torch, out=": microseconds(lambda: tileglu.glu(x, gate, up, out=out)),
        "torch op": microseconds(lambda: torch.ops.tileglu.glu(x, gate, up)),
    }
    for name, value in found.items():
        record_property(name, f"{value:.1f} us")
        print(f"warm call, {name}: {value:.1f} us")
    assert found["torch, out="] < 100


# --- On the GPU -------------------------------------------------------------------------------------------------------


@pytest.mark.gpu
class TestGpu:
    def operands(self, m=64, n=1024, k=512, device="cuda"):
        return tuple(t.to(device) for t in operands(m, n, k, "bf16"))

    def check(self, y, *tensors):
        check(y.cpu(), *(t.cpu() for t in tensors))

    def test_values_and_kernel(self):
        x, gate, up = self.operands()
        self.check(tileglu.glu(x, gate, up), x, gate, up)
        assert tileglu.plan(64, 1024, 512).backend == "sm90"
        torch.library.opcheck(torch.ops.tileglu.glu.default, (x, gate, up))

    def test_biases_in_a_graph(self):
        x, gate, up = self.operands(m=8)
        biases = {name: torch.randn(1024, device="cuda").bfloat16() for name in ("bias_gate", "bias_up")}
        torch.library.opcheck(torch.ops.tileglu.glu.default, (x, gate, up), {**biases, **SWIGLU})
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = tileglu.glu(x, gate, up, **biases, **SWIGLU)
        biases["bias_up"].add_(1)
        graph.replay()
        given = {name: as_numpy(bias.cpu()) for name, bias in biases.items()}
        expected.check(as_numpy(y.cpu()), *(as_numpy(t.cpu()) for t in (x, gate, up)), **given, **SWIGLU)

    def test_c15_current_stream(self):
        x, gate, up = self.operands()
        wanted, stream = tileglu.glu(x, gate, up), torch.cuda.Stream()
        for _ in range(50):
            late = torch.empty_like(x)
            torch.cuda.synchronize()
            with torch.cuda.stream(stream):
                torch.cuda._sleep(5_000_000)
                late.copy_(x)
                y = tileglu.glu(late, gate, up).clone()
            stream.synchronize()
            assert torch.equal(y, wanted)

    def test_c15_explicit_stream(self):
        x, gate, up = self.operands()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        for given in (stream, stream.cuda_stream):
            y = tileglu.glu(x, gate, up, stream=given)
            stream.synchronize()
            self.check(y, x, gate, up)

    def test_cuda_graph(self):
        x, gate, up = self.operands(m=8)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = tileglu.glu(x, gate, up)
        for m in (1, 64, 4096):
            tileglu.glu(self.operands(m=m)[0], gate, up)
        for seed in range(20):
            x.copy_(operands(8, 1024, 512, "bf16", seed)[0])
            graph.replay()
            self.check(y, x, gate, up)

    def test_unfused_backend_in_a_graph(self):
        x, gate, up = self.operands(m=8)
        tileglu.glu(x, gate, up, backend="cublas")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = tileglu.glu(x, gate, up, backend="cublas")
        graph.replay()
        self.check(y, x, gate, up)

    def test_compile_with_inductor(self):
        torch._dynamo.reset()
        _, gate, up = self.operands()
        compiled = torch.compile(lambda x: tileglu.glu(x, gate, up) * 2, fullgraph=True, dynamic=True)
        for m in (7, 1, 2, 128):
            x = self.operands(m=m)[0]
            assert torch.equal(compiled(x), tileglu.glu(x, gate, up) * 2)

    def test_autocast(self):
        x, gate, up = (t.float() for t in self.operands())
        with torch.autocast("cuda", torch.bfloat16):
            assert tileglu.glu(x, gate, up).dtype == torch.bfloat16

    def test_c16_mixed_devices(self):
        x, gate, up = self.operands()
        with pytest.raises(tileglu.InvalidArgument, match="gate lies on host and x on cuda:0"):
            tileglu.glu(x, gate.cpu(), up)

    def test_c16_second_device(self):
        if torch.cuda.device_count() < 2:
            pytest.skip("needs two GPUs")
        for _ in range(20):
            for device in ("cuda:1", "cuda:0"):
                x, gate, up = self.operands(device=device)
                y = tileglu.glu(x, gate, up)
                assert y.device == x.device and torch.cuda.current_device() == 0
                self.check(y, x, gate, up)
