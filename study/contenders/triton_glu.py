# SPDX-License-Identifier: Apache-2.0
"""The fused kernel as a user of Triton would write it: two accumulators, one loop over k, the activation at the end."""

import torch
import triton
import triton.language as tl

CONFIGS = [
    triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": 64, "GROUP_M": 8}, num_warps=warps, num_stages=stages)
    for m, n, warps, stages in ((128, 128, 8, 3), (128, 64, 4, 4), (64, 64, 4, 4), (16, 64, 4, 5))
]


@triton.autotune(configs=CONFIGS, key=["m_bucket", "n", "k"], warmup=5, rep=20)
@triton.jit
def glu_kernel(
    x_at, gate_at, up_at, y_at, m, n, k, m_bucket,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    group = program // (GROUP_M * tiles_n)
    first = group * GROUP_M
    height = min(tiles_m - first, GROUP_M)
    tile_m = first + (program % (GROUP_M * tiles_n)) % height
    tile_n = (program % (GROUP_M * tiles_n)) // height
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    x = x_at + (rows % m).to(tl.int64)[:, None] * k + depth[None, :]
    weight = (columns % n).to(tl.int64)[None, :] * k + depth[:, None]
    gate_sum = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    up_sum = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inside = start + depth < k
        a = tl.load(x, mask=inside[None, :], other=0.0)
        gate_sum = tl.dot(a, tl.load(gate_at + weight, mask=inside[:, None], other=0.0), gate_sum)
        up_sum = tl.dot(a, tl.load(up_at + weight, mask=inside[:, None], other=0.0), up_sum)
        x += BLOCK_K
        weight += BLOCK_K
    y = gate_sum * tl.sigmoid(gate_sum) * up_sum
    place = y_at + rows.to(tl.int64)[:, None] * n + columns[None, :]
    tl.store(place, y.to(y_at.dtype.element_ty), mask=(rows[:, None] < m) & (columns[None, :] < n))


def glu(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    (m, k), n = x.shape, gate.shape[0]
    grid = lambda meta: (triton.cdiv(m, meta["BLOCK_M"]) * triton.cdiv(n, meta["BLOCK_N"]),)
    glu_kernel[grid](x, gate, up, out, m, n, k, triton.next_power_of_2(m))
    return out


def config_text():
    config = glu_kernel.best_config
    return ", ".join(f"{name}={value}" for name, value in config.kwargs.items()) + f", {config.num_warps} warps"
