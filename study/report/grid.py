# SPDX-License-Identifier: Apache-2.0
"""(a) the speed-up grid with the paper's 20 configurations, (c) utilisation: from the rows of experiment speedup."""

from .. import stats
from ..contenders.fused import KERNELS, PAPER
from . import figures
from .data import PEAK_TFLOPS, baseline_of, by_shape, fastest, ratio
from .page import Figure, Section, Table, number, percent, raw, us

TIMES = (
    "tileglu",
    "torch_eager",
    "torch_merged",
    "torch_gemm_only",
    "cublas_merged",
    "cublas_two_gemms",
    "cpu_two_gemms",
    "triton",
    "quack",
    "cutlass_113",
)


def launches(data):
    return [name for name in ("graph", "stream", "host") if any(row.get("launch") == name for row in data.speedup)]


def lines_by_model(shapes, value):
    """{model: {"x": batch sizes, "y": value(shape, contenders)}} without the Nones."""
    series = {}
    for shape, contenders in shapes.items():
        y = value(shape, contenders)
        if y is not None:
            points = series.setdefault(shape.model, {"x": [], "y": []})
            points["x"].append(shape.m)
            points["y"].append(y)
    return series


def sources(shapes):
    return [row["raw"] for contenders in shapes.values() for row in contenders.values()]


def speedup(data):
    parts = [
        "Times in microseconds; ratios above 1 are in favour of `tileglu`, the planner's choice for separate weights."
    ]
    baseline = baseline_of(data)
    for launch in launches(data):
        shapes = by_shape(data.speedup, launch)
        if baseline and any(baseline in contenders for contenders in shapes.values()):
            figure = Figure(
                f"speedup_{launch}",
                f"Speed-up of tileglu over {baseline} ({launch})",
                f"Speed-up over {baseline} by batch size, one line a model",
            )
            series = lines_by_model(shapes, lambda _, c: ratio(c, baseline))
            parts.append(
                figures.draw(
                    data.folder,
                    figure,
                    series,
                    sources(shapes),
                    "M (tokens)",
                    "speed-up",
                    log_x=True,
                    levels={"no gain": 1.0},
                )
            )
        parts += [f"Launched as `{launch}`:", times_table(shapes)]
    if not data.speedup:
        parts.append("Not measured.")
    return Section("Speed-up grid", parts)


def times_table(shapes):
    names = [name for name in TIMES if any(name in contenders for contenders in shapes.values())]
    against = [name for name in names if name != "tileglu"]
    ratios = {name: [] for name in against}
    rows = []
    for shape, contenders in shapes.items():
        cells = [
            shape.model,
            str(shape.m),
            *(us(contenders[n]["median_us"]) if n in contenders else None for n in names),
        ]
        for name in against:
            value = ratio(contenders, name)
            cells.append(number(value, "{:.2f}x"))
            ratios[name] += [value] if value else []
        best = fastest(contenders, [*KERNELS, "tileglu"])
        rows.append([*cells, contenders[best]["config"] if best else None, raw(next(iter(contenders.values())))])
    means = [number(stats.geometric_mean(ratios[name]), "{:.2f}x") for name in against]
    rows.append(["geometric mean", "", *[""] * len(names), *means, "", ""])
    return Table(["model", "M", *names, *(f"over {name}" for name in against), "fastest kernel", ""], rows)


def paper_shapes(data):
    wanted = {(model, m) for model in data.about["paper_models"] for m in data.about["paper_batches"]}
    return {s: c for s, c in by_shape(data.speedup).items() if (s.model, s.m) in wanted}


def winners(contenders):
    """Between the paper's two kernels, and among all of this project's."""
    return {"paper": fastest(contenders, ("sync_pingpong", "interleave_by_1")), "all": fastest(contenders, KERNELS)}


def paper_wins(data):
    """({view: {kernel: configurations that it wins}}, number of configurations)."""
    wins, shapes = {"paper": {}, "all": {}}, paper_shapes(data)
    for contenders in shapes.values():
        for view, winner in winners(contenders).items():
            if winner:
                wins[view][winner] = wins[view].get(winner, 0) + 1
    return wins, len(shapes)


def paper_view(data):
    """The 20 configurations: which of the kernels wins each."""
    text = (
        "Five sizes by four batch sizes, as the paper counts its wins. Its abstract does not list them: the sizes "
        "here go from the smallest to the largest that it names, and M up to 4096, where its largest rise of "
        "intensity (247 %) falls."
    )
    rows = []
    for shape, contenders in paper_shapes(data).items():
        winner = winners(contenders)
        cells = [shape.model, str(shape.m), number(ratio(contenders, "torch_eager"), "{:.2f}x")]
        cells += [us(contenders[name]["median_us"]) if name in contenders else None for name in KERNELS]
        rows.append([*cells, named(winner["paper"]), named(winner["all"]), raw(next(iter(contenders.values())))])
    titles = ["model", "M", "over torch_eager", *KERNELS, "faster of the paper's", "fastest of ours", ""]
    return Section("The paper's 20 configurations", [text, Table(titles, rows) if rows else "Not measured."])


def named(kernel):
    return f"{kernel} ({PAPER[kernel]})" if kernel in PAPER else kernel


def counted(found):
    return (
        ", ".join(f"{named(kernel)} {count}" for kernel, count in sorted(found.items(), key=lambda item: -item[1]))
        or "none"
    )


def utilisation(data):
    shapes = by_shape(data.speedup)
    ceiling = data.ceilings.get("gemm_tflops")
    parts = [
        f"Rate of 4·M·N·K FLOP. Shares of {PEAK_TFLOPS} TFLOP/s (the data sheet, which the paper uses) and of the "
        "rate of a bf16 8192³ GEMM in the same run."
    ]
    series = lines_by_model(shapes, lambda _, c: c["tileglu"]["tflops"] if "tileglu" in c else None)
    if series:
        levels = (
            {f"{PEAK_TFLOPS} data sheet": PEAK_TFLOPS, "8192³ GEMM of this run": ceiling}
            if data.on_gpu and ceiling
            else {}
        )
        figure = Figure("utilisation", "Rate of tileglu", "TFLOP/s of tileglu by batch size, one line a model")
        parts.append(
            figures.draw(
                data.folder, figure, series, sources(shapes), "M (tokens)", "TFLOP/s", log_x=True, levels=levels
            )
        )
    rows = []
    for shape, contenders in shapes.items():
        ours = contenders.get("tileglu")
        if ours:
            eager = contenders.get("torch_eager", {}).get("tflops")
            rows.append(
                [
                    shape.model,
                    str(shape.m),
                    number(ours["tflops"], "{:.1f}"),
                    percent(ours["tflops"] / PEAK_TFLOPS if data.on_gpu else None),
                    percent(ours["tflops"] / ceiling if ceiling else None),
                    number(eager, "{:.1f}"),
                    number(ours["gbps"], "{:.0f}"),
                    raw(ours),
                ]
            )
    parts.append(
        Table(
            ["model", "M", "TFLOP/s", f"of {PEAK_TFLOPS}", "of the 8192³ GEMM", "torch_eager TFLOP/s", "GB/s", ""], rows
        )
    )
    return Section("Utilisation", parts)
