# SPDX-License-Identifier: Apache-2.0
"""(d) the roofline and (e) fusion efficiency, from what `tileglu roofline` makes of the grid's rows."""

from .. import derive
from . import figures
from .page import Figure, Section, Table, number, percent


def roofline(data):
    found = data.roofline
    if not found:
        return Section("Roofline", ["Not measured."])
    parts = [
        "Arithmetic intensity by the way of computing (`tileglu roofline`): `fused` moves A, both weights and Y; "
        "`merged` writes and reads [M,2N] besides; `two GEMMs` (eager) reads A twice and writes and reads gate, up "
        "and act(gate)."
    ]
    if found["roof"]:
        series = {}
        for point in found["points"]:
            if (
                point["contender"] in ("tileglu", "cublas_merged", "torch_eager")
                and point["launch"] == "graph"
                or (point["contender"] in ("tileglu", "torch_eager") and point["median_us"] > 1500)
            ):
                points = series.setdefault(point["contender"], {"x": [], "y": []})
                points["x"].append(point["intensity"])
                points["y"].append(point["tflops"])
        if series:
            figure = Figure(
                "roofline_plot", f"Roofline ({found['roof']['source']})", "Operating points under the roof, log-log"
            )
            parts.append(
                figures.draw(
                    data.folder,
                    figure,
                    series,
                    [derive.ROOFLINE],
                    "FLOP per byte",
                    "TFLOP/s",
                    log_x=True,
                    log_y=True,
                    roof=found["roof"],
                )
            )
    rows = []
    for row in found["rows"]:
        paths = row["paths"]
        rows.append(
            [
                row["model"],
                str(row["m"]),
                *(number(paths[p]["intensity"], "{:.0f}") for p in ("fused", "merged", "two_gemms")),
                *(percent(paths[p]["fused_is_higher_by"], "+{:.0%}") for p in ("merged", "two_gemms")),
                paths["fused"]["bound"],
                paths["merged"]["bound"],
                ", ".join(row["crosses_ridge_from"]) or None,
            ]
        )
    titles = [
        "model",
        "M",
        "fused",
        "merged",
        "two GEMMs",
        "fused over merged",
        "fused over two GEMMs",
        "fused is bound by",
        "merged is bound by",
        "crosses the ridge from",
    ]
    return Section("Roofline", [*parts, Table(titles, rows)])


def efficiency(data):
    text = (
        "The time that saved bytes predict is the baseline's time less those bytes over the measured read bandwidth; "
        "efficiency is the measured speed-up over the predicted one. Above 100 %: fusing saves more than bytes "
        "(launches, tails of waves). Below: part of the intermediates had stayed in the L2 cache, or the kernel is "
        "slower than the library's GEMM. A dash: the saved bytes alone would take longer than the baseline took."
    )
    found = (data.roofline or {}).get("fusion", [])
    if not found:
        return Section("Fusion efficiency", [text, "Not measured."])
    parts = [text]
    chosen = [
        f
        for f in found
        if f["contender"] == "tileglu" and f["efficiency"] and f["baseline"] in ("torch_eager", "cpu_two_gemms")
    ]
    chosen = [f for f in chosen if f["launch"] != "stream" or f["m"] >= 2048]
    series = {}
    for entry in chosen:
        points = series.setdefault(entry["model"], {"x": [], "y": []})
        if entry["m"] not in points["x"]:
            points["x"].append(entry["m"])
            points["y"].append(entry["efficiency"])
    if series:
        figure = Figure(
            "efficiency", "Fusion efficiency of tileglu over eager", "Efficiency by batch size, one line a model"
        )
        parts.append(
            figures.draw(
                data.folder,
                figure,
                series,
                [derive.ROOFLINE],
                "M (tokens)",
                "measured / predicted",
                log_x=True,
                levels={"as predicted": 1.0},
            )
        )
    rows = [
        [
            f["model"],
            str(f["m"]),
            f["contender"],
            f["baseline"],
            f["launch"],
            number(f["saved_bytes"] / 1e6, "{:.1f}"),
            number(f["measured_speedup"], "{:.2f}x"),
            number(f["predicted_speedup"], "{:.2f}x"),
            percent(f["efficiency"], "{:.0%}"),
        ]
        for f in found
    ]
    titles = ["model", "M", "contender", "baseline", "launch", "MB saved", "measured", "predicted", "efficiency"]
    return Section("Fusion efficiency", [*parts, Table(titles, rows)])
