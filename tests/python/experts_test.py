# SPDX-License-Identifier: Apache-2.0
"""patch on mixtures of experts: tiny models with random weights against themselves unpatched, and who is left out."""

import copy

import pytest

import tileglu

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

import tileglu.transformers as fused  # noqa: E402
from tileglu import _experts  # noqa: E402
from transformers_test import IDS, SIZES, logits  # noqa: E402

FAMILIES = {
    "Mixtral": {"num_local_experts": 6, "num_experts_per_tok": 2},
    "Qwen3Moe": {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 48, "decoder_sparse_step": 1,
                 "head_dim": 16},
    "Olmoe": {"num_experts": 6, "num_experts_per_tok": 3},
}  # fmt: skip


def tiny(family="Mixtral", seed=0, **changes):
    torch.manual_seed(seed)
    sizes = {**SIZES, **FAMILIES.get(family, {}), "initializer_range": 0.2, **changes}
    return getattr(transformers, f"{family}ForCausalLM")(getattr(transformers, f"{family}Config")(**sizes)).eval()


def experts(model, index=0):
    """The experts of a layer, which unpatched run their own loop (the faster ways of transformers have no fp64)."""
    model.set_experts_implementation("eager")
    return next(m for name, m in model.named_modules() if name.endswith(f"layers.{index}.mlp.experts"))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("implementation", ["eager", "grouped_mm"])
def test_families(family, implementation):
    model = tiny(family)
    model.set_experts_implementation(implementation)
    before = logits(model)
    with fused.patched(model) as report:
        assert len(report.patched) == 2 and not report.skipped and report.patched[0].name.endswith("experts")
        after = logits(model)
    assert torch.allclose(after, before, rtol=1e-4, atol=1e-5) and not torch.equal(after, before), "unchanged path"
    assert torch.equal(logits(model), before)


def test_the_kernel_runs_once_for_every_hit_expert_on_views_of_the_weights(monkeypatch):
    module, seen = experts(tiny()), []
    call = _experts.glu_merged
    monkeypatch.setattr(_experts, "glu_merged", lambda rows, weight, **how: seen.append(weight) or call(rows, weight, **how))
    fused.patch(module)
    x, index = torch.randn(5, 64), torch.tensor([[0, 3], [3, 0], [0, 5], [3, 5], [0, 3]])
    with torch.no_grad():
        module(x, index, torch.full((5, 2), 0.5))
    wanted = [module.gate_up_proj[e] for e in (0, 3, 5)]
    assert [w.data_ptr() for w in seen] == [w.data_ptr() for w in wanted]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_routing_of_all_kinds(dtype):
    """One expert for all, experts past the last (which stand for none), a token twice to one expert, no tokens."""
    module = experts(tiny()).to(dtype)
    plain, patched = copy.deepcopy(module), module
    fused.patch(patched)
    for index in ([[0, 1]] * 7, [[5, 5]] * 7, [[0, 6], [6, 6], [2, 1], [6, 0], [1, 1], [4, 5], [3, 0]], [[6, 6]] * 7):
        x, index = torch.randn(7, 64).to(dtype), torch.tensor(index)
        weights = torch.rand(7, 2).to(dtype)
        plainly = index.clamp(max=5), weights.masked_fill(index == 6, 0)  # the loop of transformers takes no 6
        with torch.no_grad():
            exact = copy.deepcopy(plain).double()(x.double(), plainly[0], plainly[1].double())
            wanted, found = plain(x, *plainly), patched(x, index, weights)
        assert found.dtype == dtype and found.shape == x.shape
        limit = 1.1 * (wanted.double() - exact).norm() + 1e-6 * exact.norm()
        assert (found.double() - exact).norm() <= limit
    with torch.no_grad():
        assert patched(x[:0], index[:0], weights[:0]).shape == (0, 64)


def test_bf16_is_nearer_to_fp32_than_unpatched():
    module, x = experts(tiny().bfloat16()), torch.randn(64, 64).bfloat16()
    index, weights = torch.randint(6, (64, 2)), torch.rand(64, 2).bfloat16()
    with torch.no_grad():
        exact = copy.deepcopy(module).double()(x.double(), index, weights.double())
        unpatched = (module(x, index, weights).double() - exact).norm()
        fused.patch(module)
        assert (module(x, index, weights).double() - exact).norm() <= unpatched


def test_saving_and_loading(tmp_path):
    model = tiny()
    fused.patch(model)
    model.save_pretrained(tmp_path)
    plain = transformers.MixtralForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
    assert torch.allclose(logits(plain), logits(model), rtol=1e-4, atol=1e-5)
    other = tiny(seed=1)
    fused.patch(other)
    other.load_state_dict(plain.state_dict(), strict=True)
    assert torch.equal(logits(other), logits(model))


def test_gradients():
    model = tiny()
    model.train()
    assert all("in training mode" in reason for reason in fused.patch(model).skipped.values())
    wanted = torch.autograd.grad(model(IDS, labels=IDS).loss, experts(model).gate_up_proj)[0]
    assert len(fused.patch(model, training=True).patched) == 2
    found = torch.autograd.grad(model(IDS, labels=IDS).loss, experts(model).gate_up_proj)[0]
    assert torch.allclose(found, wanted, rtol=1e-3, atol=1e-6) and found.abs().sum() > 0


def test_compiled_experts_run_their_own_forward():
    torch._dynamo.reset()
    model = tiny()
    wanted = logits(model)  # by the implementation that transformers chose
    fused.patch(model)
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    assert torch.allclose(logits(compiled), wanted, rtol=1e-4, atol=1e-5)


def test_c18_gpt_oss_is_skipped_with_the_reason():
    model = tiny("GptOss", num_local_experts=4, num_experts_per_tok=2, head_dim=16)
    before = logits(model)
    report = fused.patch(model)
    assert not report.patched and len(report.skipped) == 2
    assert all("GptOssExperts.forward is not that of MixtralExperts" in reason for reason in report.skipped.values())
    assert torch.equal(logits(model), before)


def test_what_else_is_skipped():
    assert all("activation ReLUSquared" in r for r in fused.patch(tiny(hidden_act="relu2")).skipped.values())
    module = experts(tiny())
    module.down_proj = torch.nn.Parameter(module.down_proj[0])
    assert "down_proj is no plain parameter" in fused.patch(module).skipped[""]

    class Clamped(type(module)):
        def forward(self, x, index, weights):
            return super().forward(x, index, weights).clamp(max=7)

    module = experts(tiny())
    module.__class__ = Clamped
    assert "Clamped.forward is not that of MixtralExperts" in fused.patch(module).skipped[""]


def test_changes_after_patching_are_noticed():
    model, plain = tiny(), tiny()
    fused.patch(model)
    for m in (model, plain):
        experts(m).act_fn = torch.nn.Tanh()
    fused.unpatch(plain)
    with torch.no_grad():
        x, index, weights = torch.randn(5, 64), torch.randint(6, (5, 2)), torch.rand(5, 2)
        assert torch.equal(experts(model)(x, index, weights), experts(plain)(x, index, weights))


def test_a_backend_that_cannot_is_a_reason():
    report = fused.patch(tiny(), backend="sm90")
    if tileglu.backends()["sm90"] is not None:
        assert not report.patched and all("sm90" in reason for reason in report.skipped.values())
