# SPDX-License-Identifier: Apache-2.0
"""Each claim of the paper: its figure, ours, and why they differ. Ours are computed from this study's rows; where those are
missing the claim is not measured. The reasons say what the rows show, so each is chosen by them."""

from .data import PEAK_TFLOPS, by_shape, ratio
from .grid import counted
from .page import NOT_MEASURED, Link, Section, Table

LARGE = "qwen2.5-72b"


def section(data, wins, configurations):
    rows = [
        [*claim, *ours, source] if ours else [*claim, NOT_MEASURED, "", None]
        for claim, ours, source in claims(data, wins, configurations)
    ]
    titles = ["claim", "paper", "ours", "why they differ, or what it takes", "from"]
    return Section("The paper's claims", [Table(titles, rows, 5)])


def claims(data, wins, configurations):
    """((claim, paper's figure), (ours, why) or None, where the figures are)."""
    on_gpu = data.on_gpu
    grid, fold = Link("grid", "data/speedup.json"), Link("roofline", "data/roofline.json")
    kernels = on_gpu and configurations
    yield ("Kernel-1 (`sync_pingpong`) wins", "7 of 20; large models, M ≥ 2048"), kernels and wins_of(
        wins, configurations, "sync_pingpong"), grid  # fmt: skip
    yield ("Kernel-2 (`interleave_by_1`) wins", "13 of 20; M ≤ 2048"), kernels and wins_of(
        wins, configurations, "interleave_by_1"), grid  # fmt: skip
    yield ("highest speed-up over PyTorch eager", "2.47x (Qwen2.5-0.5B)"), on_gpu and highest_speedup(data), grid
    yield ("speed-up at 72B and large M", "about 1.0x"), on_gpu and large_speedup(data), grid
    yield ("peak BF16 utilisation", f"79.5 % of {PEAK_TFLOPS:.0f} TFLOP/s"), on_gpu and utilisation(data), grid
    yield ("intermediates and activation in the unfused MLP", "9–37 % of MLP time"), on_gpu and share(data), raw_of("share")
    yield ("torch.compile for this pattern", "34–94 % of eager's speed; 3–7x slower than the kernels; hints do not help"), on_gpu and compiled(
        data), raw_of("compile")  # fmt: skip
    yield ("elements more than 1 % off", "0 for the kernels; 4.5–11 % for cuBLAS and a separate SwiGLU"), on_gpu and numerics(
        data), raw_of("numerics")  # fmt: skip
    yield ("rise of arithmetic intensity", "up to 247 %; the operating point crosses the ridge"), on_gpu and intensity(data), fold
    yield ("fusion efficiency", "near 100 % for small models; above in places for Kernel-2"), on_gpu and efficiency(data), fold


def raw_of(experiment):
    return Link(experiment, f"raw/{experiment}")


def wins_of(wins, configurations, kernel):
    if not wins["paper"]:
        return None
    ours = f"{wins['paper'].get(kernel, 0)} of {configurations} between the paper's two; {wins['all'].get(kernel, 0)} among all kernels"
    return ours, f"winners among all kernels here: {counted(wins['all'])}. The choice of sizes and batch sizes is ours."


def extreme(data, launch, contender="torch_eager", pick=max):
    known = [(ratio(c, contender), shape) for shape, c in by_shape(data.speedup, launch).items()]
    known = [(value, shape) for value, shape in known if value]
    return pick(known, key=lambda item: item[0]) if known else None


def at(shape):
    return f"{shape.model}, M = {shape.m}"


def highest_speedup(data):
    found = {launch: extreme(data, launch) for launch in ("graph", "stream")}
    ours = "; ".join(f"{value:.2f}x {launch} ({at(shape)})" for launch, (value, shape) in present(found))
    return ours and (ours, "eager is two products, SiLU and product in four kernels; launched one by one, small shapes also pay four launches, which "
                           "a CUDA graph takes away from both sides")  # fmt: skip


def present(found):
    return [(name, item) for name, item in found.items() if item]


def large_speedup(data):
    values = [ratio(c, "torch_eager") for shape, c in by_shape(data.speedup).items() if shape.model == LARGE and shape.m >= 4096]
    values = [value for value in values if value]
    return values and (f"{min(values):.2f}x to {max(values):.2f}x (M ≥ 4096)",
                       "matrix products take nearly all the time there, and the library's run at the same power limit")  # fmt: skip


def utilisation(data):
    shapes = by_shape(data.speedup)
    known = [(row["tflops"], name, shape) for shape, c in shapes.items() for name, row in c.items() if name in ("tileglu", "interleave_by_1", "sync_pingpong", "interleave", "paired")]
    if not known:
        return None
    best, name, shape = max(known, key=lambda item: item[0])
    ceiling = data.ceilings.get("gemm_tflops")
    of_ceiling = f"; {best / ceiling:.1%} of the 8192³ GEMM of the same run" if ceiling else ""
    return (f"{best / PEAK_TFLOPS:.1%}{of_ceiling} ({name}, {at(shape)})",
            "under random data the GPU is limited by power, so the clock falls below the one of the data sheet")  # fmt: skip


def share(data):
    rows = [row for row in data.rows("share") if row["status"] == "ok" and row["contender"] == "torch_eager"]
    parts = []
    for field, words in (("share_by_profile", "by profile"), ("share_by_time", "by time")):
        known = sorted((row for row in rows if row[field] is not None), key=lambda row: row[field])
        if known:
            ends = [f"{row[field]:.1%} ({row['model']}, M = {row['m']})" for row in (known[0], known[-1])]
            parts.append(f"{words} {ends[0]} to {ends[1]}")
    return parts and ("; ".join(parts), "kernels that are no products, and what the MLP takes beyond its products; what the products "
                                        "spend on writing gate and up is in neither")  # fmt: skip


def compiled(data):
    speeds, kernels, slower = {}, {}, []
    for contenders in by_shape(data.rows("compile")).values():
        for name, row in contenders.items():
            if name.startswith("torch_compile") and "torch_eager" in contenders:
                speeds.setdefault(name, []).append(contenders["torch_eager"]["median_us"] / row["median_us"])
                kernels.setdefault(name, set()).add(row.get("kernels_per_call"))
                slower += [ratio(contenders, name)] if ratio(contenders, name) else []
    if not speeds:
        return None
    ours = "; ".join(f"`{name}` {min(v):.0%} to {max(v):.0%}, {'/'.join(map(str, sorted(kernels[name], key=str)))} kernels" for name, v in speeds.items())
    why = f"tileglu is {min(slower):.2f} to {max(slower):.2f} times as fast as compiled code here. " if slower else ""
    return ours, why + "Kernels a call are counted by the profiler: with more than one, the products were not fused with each other and the activation"


def numerics(data):
    rows = [row for row in data.rows("numerics") if row["status"] == "ok" and row["dtype"] == "bf16"]
    parts = []
    for reference, words in (("operands", "fp64 on the operands"), ("unrounded", "fp64 before the operands were rounded")):
        for name in ("torch_eager", "tileglu"):
            values = [row[reference]["share_over_1_percent"] for row in rows if row["contender"] == name]
            if values:
                parts.append(f"{name} {min(values):.3%} to {max(values):.2%} against {words}")
    return parts and ("; ".join(parts), "gate, up and act(gate) are rounded to 16 bits in eager and stay fp32 in a fused kernel; both are far from "
                                        "the exact value where sums cancel, and both inherit the rounding of the inputs if the reference has not")  # fmt: skip


def intensity(data):
    rows = (data.roofline or {}).get("rows", [])
    if not rows:
        return None
    best = max(rows, key=lambda row: row["paths"]["merged"]["fused_is_higher_by"])
    small = [row for row in rows if row["model"] == "qwen2.5-0.5b" and row["m"] == 4096]
    crossing = sum("merged" in row["crosses_ridge_from"] for row in rows)
    ours = f"up to +{best['paths']['merged']['fused_is_higher_by']:.0%} over merged ({best['model']}, M = {best['m']})"
    if small:
        ours += f"; +{small[0]['paths']['merged']['fused_is_higher_by']:.0%} at 0.5B, M = 4096"
    return f"{ours}; {crossing} of {len(rows)} shapes cross the ridge", (
        "a matter of counting: [M,2N] written and read once more; against eager with its own kernels for SiLU and product the rise is larger")


def efficiency(data):
    found = [f for f in (data.roofline or {}).get("fusion", []) if f["baseline"] == "torch_eager" and f["efficiency"]]
    parts = []
    for contender in ("tileglu", "interleave_by_1"):
        values = [f for f in found if f["contender"] == contender and f["launch"] == "graph"]
        if values:
            low, high = min(values, key=lambda f: f["efficiency"]), max(values, key=lambda f: f["efficiency"])
            parts.append(f"{contender} {low['efficiency']:.0%} ({low['model']}, M = {low['m']}) to {high['efficiency']:.0%} ({high['model']}, M = {high['m']})")
    return parts and ("; ".join(parts), "predicted by the bytes saved at the measured read bandwidth; above 100 % where launches and tails of waves are saved too, "
                                        "below where intermediates had stayed in the L2 cache")  # fmt: skip
