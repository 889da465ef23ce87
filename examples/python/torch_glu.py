# SPDX-License-Identifier: Apache-2.0
"""torch: a call, the op under torch.compile, and a module made from one with gate_proj, up_proj and down_proj."""

import torch
from torch import nn

import tileglu
from tileglu.torch import FusedGatedMLP

device = "cuda" if torch.cuda.is_available() else "cpu"
tokens, intermediate, hidden = 16, 1024, 256
x = torch.randn(2, tokens, hidden, dtype=torch.bfloat16, device=device)


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj = nn.Linear(hidden, intermediate, bias=False)
        self.up_proj = nn.Linear(hidden, intermediate, bias=False)
        self.down_proj = nn.Linear(intermediate, hidden, bias=False)
        self.act_fn = nn.SiLU()

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


mlp = MLP().to(device, torch.bfloat16).eval()
with torch.no_grad():
    y = tileglu.glu(x, mlp.gate_proj.weight, mlp.up_proj.weight)
    print("glu:", tuple(y.shape), y.dtype, y.device)

    fused = FusedGatedMLP.from_mlp(mlp)  # shares the weights
    exact = mlp.float()(x.float())
    mlp.bfloat16()
    print("error of the fused module: ", float((fused(x).float() - exact).norm() / exact.norm()))
    print("error of the plain module: ", float((mlp(x).float() - exact).norm() / exact.norm()))

    backend = "inductor" if device == "cuda" else "aot_eager"  # inductor needs a C++ compiler on the CPU
    compiled = torch.compile(fused, fullgraph=True, dynamic=True, backend=backend)
    print("compiled, same bits:", torch.equal(compiled(x), fused(x)))
