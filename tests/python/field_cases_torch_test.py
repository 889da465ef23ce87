# SPDX-License-Identifier: Apache-2.0
"""Reports from other projects that concern torch and Transformers, as values: docs/field-cases.md."""

import os
import subprocess
import sys

import pytest

import expected
import tileglu
from tileglu import _library

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

import tileglu.transformers as fused  # noqa: E402
from torch_test import as_numpy, check, operands  # noqa: E402
from transformers_test import IDS, layer, logits, tiny  # noqa: E402


def test_c07_slice_of_a_batch():
    full = torch.randn(2, 8, 4096, generator=torch.Generator().manual_seed(0)).bfloat16()
    _, gate, up = operands(1, 24, 4096, "bf16")
    for x in (full[:, 3:, :], full.transpose(0, 1), torch.cat([full, full[..., :256]], -1)[..., :4096]):
        y = tileglu.glu(x, gate, up)
        assert y.shape == (*x.shape[:-1], 24) and y.is_contiguous()
        check(y, x.reshape(-1, 4096).reshape(x.shape), gate, up)
        assert torch.equal(torch.ops.tileglu.glu(x, gate, up), y)


def test_c14_opcheck_of_an_awkward_width():
    x, gate, up = operands(5, 3420, 32)
    torch.library.opcheck(torch.ops.tileglu.glu.default, (x, gate, up))
    torch.library.opcheck(torch.ops.tileglu.glu.default, (x.t().contiguous().t(), gate, up))


def test_c18_a_clamped_gate_keeps_the_models_own_result():
    config = transformers.GptOssConfig(
        num_hidden_layers=1, num_local_experts=1, num_experts_per_tok=1, hidden_size=1, intermediate_size=1,
        num_attention_heads=1, num_key_value_heads=1, head_dim=2, vocab_size=8,
    )  # fmt: skip
    module = transformers.GptOssForCausalLM(config).eval().model.layers[0].mlp.experts
    module.config._experts_implementation = "eager"
    with torch.no_grad():
        for weight, value in ((module.gate_up_proj, 10), (module.gate_up_proj_bias, 0), (module.down_proj, 1),
                              (module.down_proj_bias, 0)):  # fmt: skip
            weight.fill_(value)
        report = fused.patch(module)
        y = module(torch.ones(1, 1), torch.zeros(1, 1, dtype=torch.long), torch.ones(1, 1))
    assert not report.patched and report.skipped
    assert float(y) == pytest.approx(56.0, abs=0.05)  # plain SwiGLU: 99.995


def weights_of(seed):
    return operands(4, 40, 64, "bf16", seed)


@pytest.mark.parametrize("how", ["copy_", "load_state_dict", "gate only"])
def test_c28_a_weight_update_is_seen_at_once(how):
    mlp = tileglu.torch.FusedGatedMLP(64, 40, dtype=torch.bfloat16)
    x, *_ = weights_of(0)
    for seed in range(20):
        _, gate, up = weights_of(seed)
        with torch.no_grad():
            if how == "load_state_dict":
                mlp.load_state_dict({**mlp.state_dict(), "gate_proj.weight": gate, "up_proj.weight": up})
            else:
                mlp.gate_proj.weight.data.copy_(gate)
                if how == "copy_":
                    mlp.up_proj.weight.data.copy_(up)
            check(tileglu.glu(x, mlp.gate_proj.weight, mlp.up_proj.weight), x, gate, mlp.up_proj.weight)
            assert torch.equal(mlp(x), mlp.down_proj(tileglu.glu(x, gate, mlp.up_proj.weight)))


def storages(model):
    return {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in model.state_dict().values()}


def test_c29_patching_holds_no_weight_twice():
    import gc

    model = tiny()
    before = storages(model)
    logits(model)
    gc.collect()
    tensors = sum(isinstance(thing, torch.Tensor) and thing.numel() >= 64 * 160 for thing in gc.get_objects())
    fused.patch(model)
    logits(model)
    gc.collect()
    assert storages(model) == before
    assert sum(isinstance(o, torch.Tensor) and o.numel() >= 64 * 160 for o in gc.get_objects()) == tensors


CLEAN = """
import sys, torch, transformers
assert not any("tileglu" in name for name in sys.modules)
model = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32).eval()
with torch.no_grad():
    torch.save(model(torch.arange(18).reshape(2, 9), use_cache=False).logits, sys.argv[2])
"""


def test_c30_saved_patched_and_loaded_where_tileglu_is_not(tmp_path):
    model = tiny()
    fused.patch(model)
    model.save_pretrained(tmp_path)
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", _library.ENVIRONMENT)}
    done = subprocess.run([sys.executable, "-c", CLEAN, tmp_path, tmp_path / "y"], env=clean, capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert torch.equal(torch.load(tmp_path / "y"), logits(tiny()))


def test_c30_meta_weights_are_skipped_and_loading_first_works():
    plain = tiny()
    with torch.device("meta"):
        model = type(plain)(plain.config).eval()
    assert all("on device meta" in reason for reason in fused.patch(model).skipped.values())
    model = type(plain)(plain.config).eval()
    model.load_state_dict(plain.state_dict(), strict=True)
    assert len(fused.patch(model).patched) == 2
    assert torch.allclose(logits(model), logits(plain), atol=1e-5)


# --- On the GPU -------------------------------------------------------------------------------------------------------

FIRST_USE = """
import torch, tileglu
x, gate, up = (torch.randn(shape, device="cuda").bfloat16() for shape in ((5, 512), (1024, 512), (1024, 512)))
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = tileglu.glu(x, gate, up)
x.normal_()
graph.replay()
torch.cuda.synchronize()
assert torch.equal(y, tileglu.glu(x, gate, up)), "replay differs from eager"
"""


@pytest.mark.gpu
class TestGpu:
    def test_c19_graphs_outlive_larger_calls(self):
        _, gate, up = (t.cuda() for t in operands(1, 1024, 512, "bf16"))
        graphs = {}
        for m in (1, 8):
            x, graph = torch.empty(m, 512, device="cuda", dtype=torch.bfloat16), torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                y = tileglu.glu(x, gate, up)
            graphs[m] = x, graph, y
        for m in (1, 64, 4096, 65536):
            tileglu.glu(torch.randn(m, 512, device="cuda").bfloat16(), gate, up)
        sentinels = [torch.full((1 << 27,), 7, device="cuda", dtype=torch.int32) for _ in range(4)]
        for turn in range(100):
            for m, (x, graph, y) in graphs.items():
                x.copy_(torch.randn(m, 512).bfloat16())
                graph.replay()
                if turn % 20 == 0:
                    expected.check(as_numpy(y.cpu()), *(as_numpy(t.cpu()) for t in (x, gate, up)))
        assert all(bool((s == 7).all()) for s in sentinels)
        x, graph, y = graphs[8]
        del graphs[1]
        x.copy_(torch.randn(8, 512).bfloat16())
        graph.replay()
        assert torch.equal(y, tileglu.glu(x, gate, up))

    @pytest.mark.parametrize("backend", ["auto", "cublas"])
    def test_c20_the_first_call_of_a_process_is_captured(self, backend):
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), _library.ENVIRONMENT: _library.path()}
        code = FIRST_USE.replace("glu(x, gate, up)", f"glu(x, gate, up, backend='{backend}')")
        done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]

    def test_c28_a_weight_update_is_seen_by_a_captured_graph(self):
        x, gate, up = (t.cuda() for t in operands(4, 1024, 512, "bf16"))
        graph = torch.cuda.CUDAGraph()
        tileglu.glu(x, gate, up)
        with torch.cuda.graph(graph):
            y = tileglu.glu(x, gate, up)
        held = torch.cuda.memory_allocated()
        for seed in range(20):
            _, new_gate, new_up = operands(4, 1024, 512, "bf16", seed)
            gate.data.copy_(new_gate)
            if seed % 2:
                up.data.copy_(new_up)
            graph.replay()
            expected.check(as_numpy(y.cpu()), *(as_numpy(t.cpu()) for t in (x, gate, up)))
        assert torch.cuda.memory_allocated() <= held + (1 << 20)

    def test_c29_patching_takes_no_memory(self):
        model = tiny(hidden_size=1024, intermediate_size=4096).bfloat16().cuda()
        ids = IDS.cuda()
        logits(model, ids)
        torch.cuda.reset_peak_memory_stats()
        held = torch.cuda.memory_allocated()
        assert len(fused.patch(model).patched) == 2
        logits(model, ids)
        assert torch.cuda.memory_allocated() <= 1.02 * held
        assert layer(model).gate_proj.weight.is_cuda
