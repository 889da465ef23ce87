# SPDX-License-Identifier: Apache-2.0
"""The gated projection of NumPy arrays, in fp32 and in bf16, and what is said of the choice of kernel."""

import ml_dtypes
import numpy as np

import tileglu

tokens, intermediate, hidden = 16, 1024, 256
random = np.random.default_rng(0)
x = random.standard_normal((tokens, hidden), dtype=np.float32)
gate = random.standard_normal((intermediate, hidden), dtype=np.float32) / 16
up = random.standard_normal((intermediate, hidden), dtype=np.float32) / 16

y = tileglu.glu(x, gate, up)  # [tokens, intermediate]
g = x @ gate.T
print("against NumPy:", np.abs(y - g / (1 + np.exp(-g)) * (x @ up.T)).max())

merged = np.concatenate([gate, up]).astype(ml_dtypes.bfloat16)  # gate rows first
y16 = tileglu.glu_merged(x.astype(ml_dtypes.bfloat16), merged, "silu")
print("bf16 against fp32:", np.abs(y16.astype(np.float32) - y).max())

plan = tileglu.plan(tokens, intermediate, hidden, dtype="bf16", memory="host")
print(plan.describe())
print("fused on a GPU here?", tileglu.can_implement(tokens, intermediate, hidden, backend="sm90"))
