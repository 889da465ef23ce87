# SPDX-License-Identifier: Apache-2.0
"""(a) the speed-up grid, (c) utilisation, (d) roofline, (e) fusion efficiency: all from the rows of experiment speedup."""

from .. import stats
from ..contenders.fused import KERNELS, PAPER
from . import figures
from .data import PEAK_TFLOPS, baseline_of, by_shape, fastest, ratio
from .page import Figure, Section, Table, number, percent, raw, us

TIMES = ("tileglu", "torch_eager", "torch_merged", "torch_gemm_only", "cublas_merged", "cublas_two_gemms", "cpu_two_gemms",
         "triton", "quack", "cutlass_113")  # fmt: skip


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
    parts = ["Times in microseconds; ratios above 1 are in favour of `tileglu`, the planner's choice for separate weights."]
    baseline = baseline_of(data)
    for launch in launches(data):
        shapes = by_shape(data.speedup, launch)
        if baseline and any(baseline in contenders for contenders in shapes.values()):
            figure = Figure(f"speedup_{launch}", f"Speed-up of tileglu over {baseline} ({launch})",
                            f"Speed-up over {baseline} by batch size, one line a model")  # fmt: skip
            series = lines_by_model(shapes, lambda _, c: ratio(c, baseline))
            parts.append(figures.draw(data.folder, figure, series, sources(shapes), "M (tokens)", "speed-up", log_x=True,
                                      levels={"no gain": 1.0}))  # fmt: skip
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
        cells = [shape.model, str(shape.m), *(us(contenders[n]["median_us"]) if n in contenders else None for n in names)]
        for name in against:
            value = ratio(contenders, name)
            cells.append(number(value, "{:.2f}x"))
            ratios[name] += [value] if value else []
        best = fastest(contenders, [*KERNELS, "tileglu"])
        rows.append([*cells, contenders[best]["config"] if best else None, raw(next(iter(contenders.values())))])
    means = [number(stats.geometric_mean(ratios[name]), "{:.2f}x") for name in against]
    rows.append(["geometric mean", "", *[""] * len(names), *means, "", ""])
    return Table(["model", "M", *names, *(f"over {name}" for name in against), "fastest kernel", ""], rows)


def paper_view(data):
    """The 20 configurations: which of the kernels wins each."""
    wanted = {(model, m) for model in data.about["paper_models"] for m in data.about["paper_batches"]}
    shapes = {s: c for s, c in by_shape(data.speedup).items() if (s.model, s.m) in wanted}
    text = (
        "Five sizes by four batch sizes, as the paper counts its wins. Its abstract does not list them: the sizes here go from the smallest to the "
        "largest that it names, and M up to 4096, where its largest rise of intensity (247 %) falls. Between the paper's two kernels, and "
        "among all of this project's."
    )
    rows, wins = [], {"paper": {}, "all": {}}
    for shape, contenders in shapes.items():
        winners = {"paper": fastest(contenders, ["sync_pingpong", "interleave_by_1"]), "all": fastest(contenders, KERNELS)}
        for view, winner in winners.items():
            if winner:
                wins[view][winner] = wins[view].get(winner, 0) + 1
        cells = [shape.model, str(shape.m), number(ratio(contenders, "torch_eager"), "{:.2f}x")]
        cells += [us(contenders[name]["median_us"]) if name in contenders else None for name in KERNELS]
        rows.append([*cells, named(winners["paper"]), named(winners["all"]), raw(next(iter(contenders.values())))])
    titles = ["model", "M", "over torch_eager", *KERNELS, "faster of the paper's", "fastest of ours", ""]
    parts = [text, Table(titles, rows)] if rows else [text, "Not measured."]
    if rows:
        parts.append(f"Wins of {len(rows)}: " + "; ".join(f"{view}: {counted(found)}" for view, found in wins.items()) + ".")
    return Section("The paper's 20 configurations", parts), wins, len(rows)


def named(kernel):
    return f"{kernel} ({PAPER[kernel]})" if kernel in PAPER else kernel


def counted(found):
    return ", ".join(f"{named(kernel)} {count}" for kernel, count in sorted(found.items(), key=lambda item: -item[1])) or "none"


def utilisation(data):
    shapes = by_shape(data.speedup)
    ceiling = data.ceilings.get("gemm_tflops")
    parts = [f"Rate of 4·M·N·K FLOP. Shares of {PEAK_TFLOPS} TFLOP/s (the data sheet, which the paper uses) and of the rate of a bf16 8192³ "
             "GEMM in the same run."]  # fmt: skip
    series = lines_by_model(shapes, lambda _, c: c["tileglu"]["tflops"] if "tileglu" in c else None)
    if series:
        levels = {f"{PEAK_TFLOPS} data sheet": PEAK_TFLOPS, "8192³ GEMM of this run": ceiling} if data.on_gpu and ceiling else {}
        figure = Figure("utilisation", "Rate of tileglu", "TFLOP/s of tileglu by batch size, one line a model")
        parts.append(figures.draw(data.folder, figure, series, sources(shapes), "M (tokens)", "TFLOP/s", log_x=True, levels=levels))
    rows = []
    for shape, contenders in shapes.items():
        ours = contenders.get("tileglu")
        if ours:
            eager = contenders.get("torch_eager", {}).get("tflops")
            rows.append([shape.model, str(shape.m), number(ours["tflops"], "{:.1f}"),
                         percent(ours["tflops"] / PEAK_TFLOPS if data.on_gpu else None),
                         percent(ours["tflops"] / ceiling if ceiling else None), number(eager, "{:.1f}"),
                         number(ours["gbps"], "{:.0f}"), raw(ours)])  # fmt: skip
    parts.append(Table(["model", "M", "TFLOP/s", f"of {PEAK_TFLOPS}", "of the 8192³ GEMM", "torch_eager TFLOP/s", "GB/s", ""], rows))
    return Section("Utilisation", parts)


def roofline(data):
    found = data.roofline
    if not found:
        return Section("Roofline", ["Not measured."])
    parts = [
        "Arithmetic intensity by the way of computing (`tileglu roofline`): `fused` moves A, both weights and Y; `merged` writes and reads [M,2N] "
        "besides; `two GEMMs` (eager) reads A twice and writes and reads gate, up and act(gate)."
    ]
    if found["roof"]:
        series = {}
        for point in found["points"]:
            if point["contender"] in ("tileglu", "cublas_merged", "torch_eager") and point["launch"] == "graph" or (
                point["contender"] in ("tileglu", "torch_eager") and point["median_us"] > 1500
            ):
                points = series.setdefault(point["contender"], {"x": [], "y": []})
                points["x"].append(point["intensity"])
                points["y"].append(point["tflops"])
        if series:
            figure = Figure("roofline_plot", f"Roofline ({found['roof']['source']})", "Operating points under the roof, log-log")
            parts.append(figures.draw(data.folder, figure, series, ["data/roofline.json"], "FLOP per byte", "TFLOP/s", log_x=True,
                                      log_y=True, roof=found["roof"]))  # fmt: skip
    rows = []
    for row in found["rows"]:
        paths = row["paths"]
        rows.append([row["model"], str(row["m"]), *(number(paths[p]["intensity"], "{:.0f}") for p in ("fused", "merged", "two_gemms")),
                     *(percent(paths[p]["fused_is_higher_by"], "+{:.0%}") for p in ("merged", "two_gemms")),
                     paths["fused"]["bound"], paths["merged"]["bound"], ", ".join(row["crosses_ridge_from"]) or None])  # fmt: skip
    titles = ["model", "M", "fused", "merged", "two GEMMs", "fused over merged", "fused over two GEMMs", "fused is bound by",
              "merged is bound by", "crosses the ridge from"]  # fmt: skip
    return Section("Roofline", [*parts, Table(titles, rows)])


def efficiency(data):
    text = (
        "The time that saved bytes predict is the baseline's time less those bytes over the measured read bandwidth; efficiency is "
        "the measured speed-up over the predicted one. Above 100 %: fusing saves more than bytes (launches, tails of waves). Below: "
        "part of the intermediates had stayed in the L2 cache, or the kernel is slower than the library's GEMM. A dash: the saved bytes alone "
        "would take longer than the baseline took."
    )
    found = [f for f in (data.roofline or {}).get("fusion", []) if f["contender"] in ("tileglu", "interleave_by_1")]
    if not found:
        return Section("Fusion efficiency", [text, "Not measured."])
    parts = [text]
    chosen = [f for f in found if f["contender"] == "tileglu" and f["efficiency"] and f["baseline"] in ("torch_eager", "cpu_two_gemms")]
    chosen = [f for f in chosen if f["launch"] != "stream" or f["m"] >= 2048]
    series = {}
    for entry in chosen:
        points = series.setdefault(entry["model"], {"x": [], "y": []})
        if entry["m"] not in points["x"]:
            points["x"].append(entry["m"])
            points["y"].append(entry["efficiency"])
    if series:
        figure = Figure("efficiency", "Fusion efficiency of tileglu over eager", "Efficiency by batch size, one line a model")
        parts.append(figures.draw(data.folder, figure, series, ["data/roofline.json"], "M (tokens)", "measured / predicted", log_x=True,
                                  levels={"as predicted": 1.0}))  # fmt: skip
    rows = [[f["model"], str(f["m"]), f["contender"], f["baseline"], f["launch"], number(f["saved_bytes"] / 1e6, "{:.1f}"),
             number(f["measured_speedup"], "{:.2f}x"), number(f["predicted_speedup"], "{:.2f}x"), percent(f["efficiency"], "{:.0%}")]
            for f in found]  # fmt: skip
    titles = ["model", "M", "contender", "baseline", "launch", "MB saved", "measured", "predicted", "efficiency"]
    return Section("Fusion efficiency", [*parts, Table(titles, rows)])
