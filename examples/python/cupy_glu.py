# SPDX-License-Identifier: Apache-2.0
"""CuPy arrays, through DLPack: the call is enqueued on CuPy's current stream. Needs a GPU."""

import cupy

import tileglu

tokens, intermediate, hidden = 64, 1024, 512
random = cupy.random.default_rng(0)
x, gate, up = (
    random.standard_normal(shape, dtype=cupy.float32).astype(cupy.float16) / 16
    for shape in ((tokens, hidden), (intermediate, hidden), (intermediate, hidden))
)

stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    y = tileglu.glu(x, gate, up)  # [tokens, intermediate], where x lies
stream.synchronize()

g, u = (x.astype(cupy.float32) @ w.astype(cupy.float32).T for w in (gate, up))
print("against CuPy in fp32:", float(abs(y - g / (1 + cupy.exp(-g)) * u).max()))
print("with out=:", tileglu.glu(x, gate, up, out=y) is y)
print(tileglu.plan(tokens, intermediate, hidden, dtype="fp16"))
