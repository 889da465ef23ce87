# SPDX-License-Identifier: Apache-2.0
"""Each claim of the paper: its figure, ours, and why they differ. Ours are computed from this study's rows; where those
are missing, or were measured without a GPU, the claim is not measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

from .. import derive
from ..store import SCHEMA_VERSION, write_json
from . import grid
from .data import PEAK_TFLOPS, by_shape, ratio
from .page import NOT_MEASURED, Link, Section, Table

FILE = "data/claims.json"
SMALL, LARGE = "qwen2.5-0.5b", "qwen2.5-72b"


@dataclass
class Claim:
    text: str
    paper: str
    ours: Callable  # of Data: (our figures, why they differ); None if there are no rows for it
    source: Link


def rows_of(data):
    """A row for each claim, as data/claims.json holds them; `ours` and `source` are null where it was not measured."""
    rows = []
    for claim in CLAIMS:
        ours, why = (data.on_gpu and claim.ours(data)) or (None, "")
        source = claim.source.target if ours else None
        rows.append({"claim": claim.text, "paper": claim.paper, "ours": ours, "why": why, "source": source})
    return rows


def section(data):
    rows = rows_of(data)
    write_json(
        data.folder / FILE,
        {
            "schema_version": SCHEMA_VERSION,
            "device": data.bench.get("device"),
            "commit": data.bench.get("commit"),
            "preset": data.about["preset"],
            "dtype": data.about["dtype"],
            "unfinished": {name: len(keys) for name, keys in data.unfinished.items()},
            "rows": rows,
        },
    )
    titles = ["claim", "paper", "ours", "why they differ, or what it takes", "from"]
    cells = [
        [row["claim"], row["paper"], row["ours"] or NOT_MEASURED, row["why"], claim.source if row["ours"] else None]
        for claim, row in zip(CLAIMS, rows)
    ]
    return Section("The paper's claims", [Table(titles, cells, 5)])


def at(row_or_shape):
    if isinstance(row_or_shape, dict):
        return f"{row_or_shape['model']}, M = {row_or_shape['m']}"
    return f"{row_or_shape.model}, M = {row_or_shape.m}"


def wins_of(kernel):
    def ours(data):
        wins, configurations = grid.paper_wins(data)
        if not wins["paper"]:
            return None
        of_paper, of_all = (wins[view].get(kernel, 0) for view in ("paper", "all"))
        why = f"The choice of sizes and batch sizes is ours. Fastest among all kernels: {grid.counted(wins['all'])}."
        return f"{of_paper} of {configurations} between the paper's two; {of_all} among all kernels", why

    return ours


def highest_speedup(data):
    parts = []
    for launch in ("graph", "stream"):
        known = [(ratio(c, "torch_eager"), shape) for shape, c in by_shape(data.speedup, launch).items()]
        known = [(value, shape) for value, shape in known if value]
        if known:
            value, shape = max(known, key=lambda item: item[0])
            parts.append(f"{value:.2f}x as `{launch}` ({at(shape)})")
    why = (
        "Eager is four kernels: two products, SiLU, product. Launched one by one (`stream`), small shapes also pay "
        "for four launches, which a CUDA graph takes away from both sides."
    )
    return parts and ("; ".join(parts), why)


def large_speedup(data):
    shapes = by_shape(data.speedup)
    values = [ratio(c, "torch_eager") for shape, c in shapes.items() if shape.model == LARGE and shape.m >= 4096]
    values = [value for value in values if value]
    why = "The matrix products take nearly all of the time there, and those of the library run at the same power limit."
    return values and (f"{min(values):.2f}x to {max(values):.2f}x (M ≥ 4096)", why)


def utilisation(data):
    fused = ("tileglu", *grid.KERNELS)
    rows = [row for c in by_shape(data.speedup).values() for name, row in c.items() if name in fused]
    if not rows:
        return None
    best = max(rows, key=lambda row: row["tflops"])
    ceiling = data.ceilings.get("gemm_tflops")
    of_ceiling = f"; {best['tflops'] / ceiling:.1%} of the 8192³ GEMM of the same run" if ceiling else ""
    ours = f"{best['tflops'] / PEAK_TFLOPS:.1%}{of_ceiling} (`{best['contender']}`, {at(best)})"
    return ours, "With random data the power limit holds the clock below the one that the data sheet's figure is for."


def share(data):
    rows = [row for row in data.rows("share") if row["status"] == "ok" and row["contender"] == "torch_eager"]
    parts = []
    for field, words in (("share_by_profile", "by profile"), ("share_by_time", "by time")):
        known = sorted((row for row in rows if row[field] is not None), key=lambda row: row[field])
        if known:
            ends = [f"{row[field]:.1%} ({at(row)})" for row in (known[0], known[-1])]
            parts.append(f"{words} {ends[0]} to {ends[1]}")
    why = "What the products spend on writing gate and up is in neither figure, so both are below the true share."
    return parts and ("; ".join(parts), why)


def compiled(data):
    speeds, kernels, faster = {}, {}, []
    for contenders in by_shape(data.rows("compile")).values():
        for name, row in contenders.items():
            if name.startswith("torch_compile") and "torch_eager" in contenders:
                speeds.setdefault(name, []).append(contenders["torch_eager"]["median_us"] / row["median_us"])
                kernels.setdefault(name, set()).add(str(row.get("kernels_per_call")))
                faster += [ratio(contenders, name)] if ratio(contenders, name) else []
    ours = "; ".join(
        f"`{name}` {min(values):.0%} to {max(values):.0%} of eager, {'/'.join(sorted(kernels[name]))} kernels a call"
        for name, values in speeds.items()
    )
    why = "More than one kernel a call means that products and activation were not all fused."
    if faster:
        why += f" tileglu is {min(faster):.2f} to {max(faster):.2f} times as fast as the compiled code."
    return ours and (ours, why)


def numerics(data):
    rows = [row for row in data.rows("numerics") if row["status"] == "ok" and row["dtype"] == "bf16"]
    parts = []
    for reference, words in (("operands", "fp64 on the operands"), ("unrounded", "fp64 before they were rounded")):
        for name in ("torch_eager", "tileglu"):
            values = [row[reference]["share_over_1_percent"] for row in rows if row["contender"] == name]
            if values:
                parts.append(f"`{name}` {min(values):.3%} to {max(values):.2%} against {words}")
    why = (
        "Eager rounds gate, up and act(gate) to 16 bits, a fused kernel none of them. Where sums cancel, both are "
        "more than 1 % off; and a reference made from values before they were rounded charges that rounding to "
        "whoever computes."
    )
    return parts and ("; ".join(parts), why)


def intensity(data):
    rows = (data.roofline or {}).get("rows", [])
    if not rows:
        return None
    rise = lambda row: row["paths"]["merged"]["fused_is_higher_by"]
    best = max(rows, key=rise)
    crossing = sum("merged" in row["crosses_ridge_from"] for row in rows)
    ours = [f"up to +{rise(best):.0%} over merged ({at(best)})"]
    ours += [f"+{rise(row):.0%} at {at(row)}" for row in rows if row["model"] == SMALL and row["m"] == 4096]
    ours.append(f"{crossing} of {len(rows)} shapes cross the ridge")
    why = (
        "Counted rather than measured: the merged path writes and reads [M,2N] besides. The paper's figure is that of "
        "its smallest model at M = 4096; the ridge is that of this GPU."
    )
    return "; ".join(ours), why


def efficiency(data):
    found = [f for f in (data.roofline or {}).get("fusion", []) if f["baseline"] == "torch_eager" and f["efficiency"]]
    parts = []
    for contender in derive.FUSED:
        known = [f for f in found if f["contender"] == contender and f["launch"] == "graph"]
        known.sort(key=lambda f: f["efficiency"])
        if known:
            ends = [f"{f['efficiency']:.0%} ({at(f)})" for f in (known[0], known[-1])]
            parts.append(f"`{contender}` {ends[0]} to {ends[1]}")
    why = (
        "Predicted by the bytes saved at the read bandwidth of the same run. Above 100 % where launches and the tails "
        "of waves are saved too, below where intermediates had stayed in the L2 cache or the library's products are "
        "faster."
    )
    return parts and ("; ".join(parts), why)


GRID, ROOFLINE = Link("grid", derive.GRID), Link("roofline", derive.ROOFLINE)
CLAIMS = (
    Claim("Kernel-1 (`sync_pingpong`) wins", "7 of 20; large models, M ≥ 2048", wins_of("sync_pingpong"), GRID),
    Claim("Kernel-2 (`interleave_by_1`) wins", "13 of 20; M ≤ 2048", wins_of("interleave_by_1"), GRID),
    Claim("highest speed-up over PyTorch eager", "2.47x (Qwen2.5-0.5B)", highest_speedup, GRID),
    Claim("speed-up at 72B and large M", "about 1.0x", large_speedup, GRID),
    Claim("peak BF16 utilisation", "79.5 % of 989 TFLOP/s", utilisation, GRID),
    Claim("intermediates and activation in the unfused MLP", "9–37 % of MLP time", share, Link("share", "raw/share")),
    Claim(
        "torch.compile for this pattern",
        "34–94 % of eager's speed; 3–7x slower than the kernels; hints do not help",
        compiled,
        Link("compile", "raw/compile"),
    ),
    Claim(
        "elements more than 1 % off",
        "0 for the kernels; 4.5–11 % for cuBLAS and a separate SwiGLU",
        numerics,
        Link("numerics", "raw/numerics"),
    ),
    Claim("rise of arithmetic intensity", "up to 247 %; the operating point crosses the ridge", intensity, ROOFLINE),
    Claim("fusion efficiency", "near 100 % for small models; above in places for Kernel-2", efficiency, ROOFLINE),
)
