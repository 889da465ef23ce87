# SPDX-License-Identifier: Apache-2.0
"""patch and unpatch on tiny models with random weights."""

import copy
import pickle

import pytest

import tileglu

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

import tileglu.transformers as fused  # noqa: E402

SIZES = {
    "vocab_size": 128, "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
FAMILIES = {
    "Qwen2": "Qwen2Config", "Qwen3": "Qwen3Config", "Llama": "LlamaConfig", "Mistral": "MistralConfig",
    "Gemma": "GemmaConfig", "Gemma2": "Gemma2Config", "Gemma3": "Gemma3TextConfig", "Phi3": "Phi3Config",
}  # fmt: skip
IDS = torch.arange(18).reshape(2, 9)


def tiny(family="Llama", config=None, **changes):
    torch.manual_seed(0)
    config = getattr(transformers, config or FAMILIES[family])(**{**SIZES, **changes})
    return getattr(transformers, f"{family}ForCausalLM")(config).eval()


@torch.no_grad()
def logits(model, ids=IDS):
    return model(ids, use_cache=False).logits


@pytest.mark.parametrize("family", FAMILIES)
def test_families(family):
    model = tiny(family)
    before, state = logits(model), {name: t.clone() for name, t in model.state_dict().items()}
    with fused.patched(model) as report:
        assert len(report.patched) == 2 and not report.skipped and report.patched[0].backend == "cpu"
        assert "2 modules patched, 0 skipped" in str(report)
        after = logits(model)
        assert torch.allclose(after, before, atol=1e-5) and not torch.equal(after, before), "the fused path did not run"
        assert model.state_dict().keys() == state.keys()
        assert all(torch.equal(t, state[name]) for name, t in model.state_dict().items())
    assert torch.equal(logits(model), before)
    assert fused.unpatch(model) == 0


def with_biases(family):
    """A model whose gate and up have biases that matter: by its configuration, or Phi-3's merged layer with one put in."""
    model = tiny(family, **({"mlp_bias": True} if family == "Llama" else {}))
    for block in model.model.layers:
        if family == "Phi3":
            block.mlp.gate_up_proj.bias = torch.nn.Parameter(torch.empty(2 * 160))
        for name, parameter in block.mlp.named_parameters():
            if name.endswith("bias"):
                torch.nn.init.normal_(parameter)
    return model


@pytest.mark.parametrize("family", ["Llama", "Phi3"])
def test_c22_biases_are_part_of_what_is_computed(family):
    model = with_biases(family)
    before = logits(model)
    with fused.patched(model) as report:
        assert len(report.patched) == 2 and not report.skipped
        after = logits(model)
        assert torch.allclose(after, before, atol=1e-5) and not torch.equal(after, before)
        for parameter in layer(model).parameters():
            if parameter.dim() == 1:
                parameter.data.zero_()  # seen at once
        changed = logits(model)
        assert not torch.allclose(changed, before, atol=1e-3)
    assert torch.allclose(changed, logits(model), atol=1e-5)


@pytest.mark.parametrize("family", ["Qwen2", "Gemma2", "Phi3"])
def test_bf16_is_nearer_to_fp32_than_unpatched(family):
    model = tiny(family, initializer_range=0.2)
    model = model.bfloat16()
    exact_of_rounded = logits(copy.deepcopy(model).double())
    error = lambda found: float((found.double() - exact_of_rounded).norm() / exact_of_rounded.norm())  # noqa: E731
    unpatched = error(logits(model))
    with fused.patched(model):
        assert error(logits(model)) <= 1.1 * unpatched


@pytest.mark.parametrize(
    "changes, text",
    [
        ({"hidden_act": "relu2"}, "activation ReLUSquaredActivation"),
        ({"hidden_act": "quick_gelu"}, "activation QuickGELUActivation"),
        ({"hidden_act": "relu6"}, "activation ReLU6"),
        ({"hidden_act": "gelu_10"}, "activation ClippedGELUActivation"),
    ],
)
def test_c18_c22_skipped_with_the_reason_and_untouched(changes, text):
    model = tiny(**changes)
    before = logits(model)
    report = fused.patch(model)
    assert not report.patched and len(report.skipped) == 2 and all(text in reason for reason in report.skipped.values())
    assert torch.equal(logits(model), before)
    with pytest.raises(tileglu.NotSupported, match="2 skipped"):
        fused.patch(model, strict=True)


@pytest.mark.parametrize(
    "act, name",
    [("silu", "silu"), ("swish", "silu"), ("gelu", "gelu_erf"), ("gelu_pytorch_tanh", "gelu_tanh"), ("relu", "relu"),
     ("gelu_new", "gelu_tanh"), ("gelu_python", "gelu_erf"), ("sigmoid", "sigmoid"), ("linear", "identity")],
)  # fmt: skip
def test_c18_activations_by_what_they_compute(act, name):
    model = tiny(hidden_act=act)
    before = logits(model)
    assert [module.activation for module in fused.patch(model).patched] == [name] * 2
    assert torch.allclose(logits(model), before, atol=1e-5)


def layer(model, index=0):
    return model.model.layers[index].mlp


def test_one_odd_layer_of_many():
    class Wrapped(torch.nn.Linear):
        pass

    model = tiny()
    layer(model).gate_proj.__class__ = Wrapped
    report = fused.patch(model)
    assert [p.name for p in report.patched] == ["model.layers.1.mlp"]
    assert "is a Wrapped, not a plain nn.Linear" in report.skipped["model.layers.0.mlp"]


def test_c18_a_subclass_with_its_own_forward_is_skipped():
    class Clamped(type(layer(tiny()))):
        def forward(self, x):
            return self.down_proj(self.act_fn(self.gate_proj(x).clamp(max=7)) * (self.up_proj(x) + 1))

    model = tiny()
    layer(model).__class__ = Clamped
    assert "Clamped.forward is not the plain gated MLP" in fused.patch(model).skipped["model.layers.0.mlp"]


def test_training_mode():
    model = tiny().train()
    assert all("in training mode" in reason for reason in fused.patch(model).skipped.values())
    model.eval()
    fused.patch(model)
    model.train()
    wanted = torch.autograd.grad(model(IDS, labels=IDS).loss, layer(model).gate_proj.weight)[0]  # the original forward
    fused.unpatch(model)
    fused.patch(model, training=True)
    found = torch.autograd.grad(model(IDS, labels=IDS).loss, layer(model).gate_proj.weight)[0]
    assert torch.allclose(found, wanted, atol=1e-7) and found.abs().sum() > 0


def test_changes_after_patching_are_noticed():
    model, plain = tiny(), tiny()
    fused.patch(model)
    for m in (model, plain):
        layer(m, 0).act_fn = torch.nn.Tanh()
        layer(m, 1).up_proj = torch.nn.Sequential(layer(m, 1).up_proj, torch.nn.ReLU())
    assert torch.equal(logits(model), logits(plain))


def test_hooks_after_patching_run():
    model, plain = tiny(), tiny()
    fused.patch(model)
    for m in (model, plain):
        layer(m).gate_proj.register_forward_hook(lambda module, inputs, output: output * 2)
    assert torch.allclose(logits(model), logits(plain), atol=1e-5)


def test_c28_c30_weights_stay_live_and_files_stay_the_same(tmp_path):
    model = tiny()
    fused.patch(model)
    with torch.no_grad():
        layer(model).gate_proj.weight.mul_(2)
    state = tiny().state_dict()
    state["model.layers.0.mlp.gate_proj.weight"] = state["model.layers.0.mlp.gate_proj.weight"] * 2
    plain = tiny()
    plain.load_state_dict(state)
    assert torch.allclose(logits(model), logits(plain), atol=1e-5)
    model.save_pretrained(tmp_path)
    loaded = type(model).from_pretrained(tmp_path).eval()
    assert torch.equal(logits(loaded), logits(plain))
    model.load_state_dict(tiny().state_dict(), strict=True)
    assert torch.allclose(logits(model), logits(tiny()), atol=1e-5)
    model.to(torch.bfloat16)
    assert logits(model).dtype == torch.bfloat16


def test_copies():
    model = tiny()
    fused.patch(model)
    copied = copy.deepcopy(model)
    with torch.no_grad():
        layer(copied).gate_proj.weight.zero_()
    assert layer(copied).forward.__self__ is layer(copied) and fused.unpatch(copied) == 2
    assert torch.allclose(logits(model), logits(tiny()), atol=1e-5)
    assert fused.unpatch(pickle.loads(pickle.dumps(model))) == 0


def test_patching_twice():
    model = tiny()
    assert len(fused.patch(model).patched) == 2
    assert len(fused.patch(model).patched) == 0
    assert fused.unpatch(model) == 2


def test_compile_and_generate():
    torch._dynamo.reset()
    model = tiny()
    plain = model.generate(IDS, max_new_tokens=5, do_sample=False)
    fused.patch(model)
    assert torch.equal(model.generate(IDS, max_new_tokens=5, do_sample=False), plain)
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
    for length in (1, 2, 7, 9):
        assert torch.allclose(logits(compiled, IDS[:, :length]), logits(model, IDS[:, :length]), atol=1e-6)


@pytest.mark.gpu
def test_on_the_gpu():
    model = tiny("Qwen2").bfloat16()
    exact = logits(copy.deepcopy(model).double())
    model, ids = model.cuda(), IDS.cuda()
    error = lambda found: float((found.double().cpu() - exact).norm() / exact.norm())  # noqa: E731
    unpatched = error(logits(model, ids))
    report = fused.patch(model)
    assert len(report.patched) == 2 and report.patched[0].backend == "sm90"
    assert error(logits(model, ids)) <= 1.1 * unpatched


@pytest.mark.gpu
@pytest.mark.parametrize("family", ["Llama", "Phi3"])
def test_biases_on_the_gpu(family):
    model = with_biases(family).bfloat16()
    exact = logits(copy.deepcopy(model).double())
    model, ids = model.cuda(), IDS.cuda()
    error = lambda found: float((found.double().cpu() - exact).norm() / exact.norm())  # noqa: E731
    unpatched = error(logits(model, ids))
    assert len(fused.patch(model).patched) == 2
    assert error(logits(model, ids)) <= 1.1 * unpatched
