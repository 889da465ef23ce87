# SPDX-License-Identifier: Apache-2.0
"""FusedGatedMLP: made from a module and of its own, its state, biases, and what it refuses."""

import copy
import io

import pytest

import tileglu

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import tileglu.torch as tileglu_torch  # noqa: E402
from torch_formula import SWIGLU, in_torch  # noqa: E402


class MLP(nn.Module):
    def __init__(self, act=None, bias=False):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(32, 48, bias=bias), nn.Linear(32, 48, bias=False)
        self.down_proj, self.act_fn = nn.Linear(48, 32), act or nn.SiLU()

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


def test_module_shares_weights_and_state():
    mlp = MLP().eval()
    fused = tileglu_torch.FusedGatedMLP.from_mlp(mlp)
    x = torch.randn(2, 5, 32)
    assert torch.allclose(fused(x), mlp(x), atol=1e-6)
    assert fused.gate_proj.weight is mlp.gate_proj.weight and not fused.training
    assert fused.state_dict().keys() == mlp.state_dict().keys()
    mlp.load_state_dict(MLP().state_dict())  # in place: seen by both
    assert torch.allclose(fused(x), mlp(x), atol=1e-6)
    file = io.BytesIO()
    torch.save(fused.state_dict(), file)
    file.seek(0)
    other = MLP()
    other.load_state_dict(torch.load(file), strict=True)
    assert torch.allclose(other(x), fused(x), atol=1e-6)
    assert torch.allclose(copy.deepcopy(fused)(x), fused(x), atol=1e-6)


def test_module_with_biases():
    mlp = MLP(bias=True)  # of gate and down only
    fused = tileglu_torch.FusedGatedMLP.from_mlp(mlp)
    x = torch.randn(2, 5, 32)
    assert torch.allclose(fused(x), mlp(x), atol=1e-6) and fused.state_dict().keys() == mlp.state_dict().keys()
    merged = tileglu_torch.FusedGatedMLP(32, 48, merged=True, bias=True, **SWIGLU)
    (gate, up), (bias_gate, bias_up) = merged.gate_up_proj.weight.chunk(2), merged.gate_up_proj.bias.chunk(2)
    wanted = merged.down_proj(in_torch(x, gate, up, bias_gate, bias_up, **SWIGLU))
    assert torch.allclose(merged(x), wanted, atol=1e-6)
    merged(x).sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in merged.parameters())


def test_module_of_its_own_and_merged():
    fused = tileglu_torch.FusedGatedMLP(32, 48, "gelu_tanh", merged=True)
    gate, up = fused.gate_up_proj.weight.chunk(2)
    x = torch.randn(5, 32)
    wanted = F.linear(F.gelu(F.linear(x, gate), approximate="tanh") * F.linear(x, up), fused.down_proj.weight)
    assert torch.allclose(fused(x), wanted, atol=1e-6)
    compiled = torch.compile(fused, fullgraph=True, dynamic=True, backend="aot_eager")
    assert torch.allclose(compiled(x), wanted, atol=1e-6)
    assert set(tileglu_torch.FusedGatedMLP(32, 48).state_dict()) == {f"{n}_proj.weight" for n in ("gate", "up", "down")}


@pytest.mark.parametrize(
    "mlp, text",
    [
        (MLP(nn.Tanh()), "activation Tanh"),
        (MLP(nn.PReLU()), "activation PReLU"),
        (MLP(lambda g: F.silu(g).clamp(max=7)), "activation"),
        (MLP(lambda g: g * torch.sigmoid(1.702 * g)), "activation"),
        (nn.Linear(3, 3), "has no layers"),
    ],
)
def test_c18_what_is_no_plain_mlp_is_refused(mlp, text):
    with pytest.raises(tileglu.InvalidArgument, match=text):
        tileglu_torch.FusedGatedMLP.from_mlp(mlp)
