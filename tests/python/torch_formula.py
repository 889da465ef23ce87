# SPDX-License-Identifier: Apache-2.0
"""The gated projection in plain torch, for the tests of torch."""

import torch
from torch.nn import functional as F

ACTIVATIONS = {
    "silu": F.silu,
    "gelu_tanh": lambda g: F.gelu(g, approximate="tanh"),
    "gelu_erf": F.gelu,
    "relu": F.relu,
    "sigmoid": torch.sigmoid,
    "identity": lambda g: g,
}
SWIGLU = {"activation": "swiglu", "alpha": 1.702, "limit": 0.75, "up_offset": 1.0}


def in_torch(x, gate, up, bias_gate=None, bias_up=None, add_gate=0, add_up=0, activation="silu", alpha=1.0, limit=0.0,
             up_offset=0.0):  # fmt: skip
    """The formula in plain torch, for its gradients."""
    g, u = F.linear(x, gate, bias_gate) + add_gate, F.linear(x, up, bias_up) + add_up
    if limit:
        g, u = g.clamp(max=limit), u.clamp(-limit, limit)
    act = (lambda g: g * torch.sigmoid(alpha * g)) if activation == "swiglu" else ACTIVATIONS[activation]
    return act(g) * (u + up_offset)
