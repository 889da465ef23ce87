# SPDX-License-Identifier: Apache-2.0
"""(b) share of intermediates, (f) numerics, (g) the whole MLP, (h) energy, and torch.compile."""

from . import figures
from .data import by_shape, ratio
from .page import Figure, Section, Table, number, percent, raw, us


def good(rows):
    return [row for row in rows if row["status"] == "ok"]


def share(data):
    text = (
        "The eager MLP with its down-projection. By profile: of the time of all kernels (torch's profiler, warm "
        "cache), the part of those that are no matrix products: activation and product, which exist only to read and "
        "write intermediates. By time: what the MLP takes beyond its products alone, timed in turn with a cold cache. "
        "What the GEMMs spend on writing gate and up is in neither."
    )
    rows = good(data.rows("share"))
    if not rows:
        return Section("Share of intermediates and activation", [text, "Not measured."])
    series = {}
    for row in rows:
        if row["contender"] == "torch_eager":
            points = series.setdefault(f"M = {row['m']}", {"x": [], "y": []})
            points["x"].append(row["model"])
            points["y"].append(100 * row["share_by_time"])
    figure = Figure(
        "share",
        "Share of intermediates and activation in the eager MLP, by time",
        "Bars by model, one colour a batch size",
    )
    drawn = figures.draw(data.folder, figure, series, [row["raw"] for row in rows], "", "% of kernel time", bars=True)
    cells = [
        [
            row["model"],
            str(row["m"]),
            row["contender"],
            us(row["mlp_us"]),
            us(row["products_us"]),
            percent(row["share_by_time"]),
            percent(row["share_by_profile"]),
            raw(row),
        ]
        for row in rows
    ]
    return Section(
        "Share of intermediates and activation",
        [
            text,
            drawn,
            Table(["model", "M", "contender", "MLP µs", "its products µs", "share by time", "by profile", ""], cells),
        ],
    )


def numerics(data):
    text = (
        "Share of elements more than 1 % off, and relative Frobenius error, against fp64 on the operands as they are "
        "given (bf16 or fp16), and against fp64 on the values before those were rounded to 16 bits. "
        "`torch_eager+fp32_sums` forbids reduced precision where split-K adds up its parts, `+no_split_k` forbids "
        "split-K as well."
    )
    rows = good(data.rows("numerics"))
    if not rows:
        return Section("Numerics", [text, "Not measured."])
    shown = ("torch_eager", "torch_merged", "cpu_two_gemms", "tileglu")
    series = {}
    first = rows[0]["model"]
    for row in rows:
        if (
            row["contender"] in shown
            and row["dtype"] == "bf16"
            and (row["model"] == first or row["data"].startswith("layer"))
        ):
            points = series.setdefault(row["contender"], {"x": [], "y": []})
            points["x"].append(row["data"])
            points["y"].append(100 * row["operands"]["share_over_1_percent"])
    figure = Figure(
        "numerics",
        f"Elements more than 1 % off fp64 on the operands (bf16, {first} and real layers)",
        "Bars by kind of data, one colour a contender",
    )
    drawn = figures.draw(data.folder, figure, series, [row["raw"] for row in rows], "", "% of elements", bars=True)
    cells = [
        [
            row["model"],
            row["dtype"],
            row["data"],
            row["contender"],
            *(percent(row[reference]["share_over_1_percent"], "{:.3%}") for reference in ("operands", "unrounded")),
            *(number(row[reference]["relative_frobenius"], "{:.5f}") for reference in ("operands", "unrounded")),
            raw(row),
        ]
        for row in rows
    ]
    titles = [
        "model",
        "dtype",
        "data",
        "contender",
        "over 1 %",
        "over 1 %, unrounded reference",
        "error",
        "error, unrounded reference",
        "",
    ]
    return Section("Numerics", [text, drawn, Table(titles, cells, 4)])


def end_to_end(data):
    text = (
        "The gated projection followed by the down-projection (cuBLASLt through torch), as a CUDA graph and launched "
        "call by call."
    )
    rows = data.rows("end_to_end")
    parts = [text]
    for launch in ("graph", "stream", "host"):
        shapes = by_shape(rows, launch)
        if not shapes:
            continue
        names = list(dict.fromkeys(name for contenders in shapes.values() for name in contenders))
        cells = [
            [
                shape.model,
                str(shape.m),
                *(us(c[n]["median_us"]) if n in c else None for n in names),
                *(number(ratio(c, n), "{:.2f}x") for n in names if n != "tileglu"),
                raw(next(iter(c.values()))),
            ]
            for shape, c in shapes.items()
        ]
        titles = ["model", "M", *names, *(f"over {n}" for n in names if n != "tileglu"), ""]
        parts += [f"Launched as `{launch}`:", Table(titles, cells)]
    return Section("The whole MLP", parts if len(parts) > 1 else [text, "Not measured."])


def energy(data):
    text = (
        "Each contender runs for seconds on end, twice, in turn; median of the power samples after the sensor has "
        "settled, times the time of a call. The counter is the driver's own energy count over the same calls, "
        "settling included."
    )
    rows = good(data.rows("energy"))
    if not rows:
        return Section("Energy", [text, "Not measured."])
    eager = {(row["model"], row["m"]): row["joules_per_call"] for row in rows if row["contender"] == "torch_eager"}
    cells = []
    for row in rows:
        base = eager.get((row["model"], row["m"]))
        cells.append(
            [
                row["model"],
                str(row["m"]),
                row["contender"],
                us(row["call_us"]),
                number(row["watts"], "{:.0f}"),
                number(row["joules_per_call"] * 1e3, "{:.3f}"),
                number(row.get("counter_joules_per_call", 0) * 1e3, "{:.3f}"),
                percent(row["joules_per_call"] / base if base else None, "{:.0%}"),
                raw(row),
            ]
        )
    titles = ["model", "M", "contender", "µs", "W", "mJ a call", "mJ a call, counter", "of eager", ""]
    series = {}
    for row in rows:
        points = series.setdefault(row["contender"], {"x": [], "y": []})
        base = eager.get((row["model"], row["m"]))
        if base:
            points["x"].append(f"{row['model']}, M = {row['m']}")
            points["y"].append(100 * row["joules_per_call"] / base)
    figure = Figure("energy", "Energy of a call, eager = 100 %", "Bars by shape, one colour a contender")
    drawn = (
        [figures.draw(data.folder, figure, series, [row["raw"] for row in rows], "", "% of eager", bars=True)]
        if eager
        else []
    )
    return Section("Energy", [text, *drawn, Table(titles, cells)])


def compiled(data):
    text = (
        "`torch_compile`: model code as it is; `_merged`: one product, then chunk; `_max_autotune`: the same model "
        "code with all tuning; `_hints`: weights interleaved so that gate and up of an output are neighbours, Triton "
        "products only, epilogue fusion on. `generated`: kernels that the compiler wrote; `kernels a call`: what one "
        "call runs, by the profiler. One kernel means that it fused."
    )
    rows = data.rows("compile")
    parts = [text]
    for launch in ("graph", "stream", "host"):
        shapes = by_shape(rows, launch)
        cells = []
        for shape, contenders in shapes.items():
            for name, row in contenders.items():
                speed = (
                    contenders["torch_eager"]["median_us"] / row["median_us"] if "torch_eager" in contenders else None
                )
                cells.append(
                    [
                        shape.model,
                        str(shape.m),
                        name,
                        us(row["median_us"]),
                        percent(speed, "{:.0%}"),
                        number(ratio(contenders, name), "{:.2f}x"),
                        number(row.get("generated_kernels"), "{}"),
                        number(row.get("kernels_per_call"), "{}"),
                        row["config"],
                        raw(row),
                    ]
                )
        if cells:
            titles = [
                "model",
                "M",
                "contender",
                "µs",
                "speed, eager = 100 %",
                "tileglu is faster by",
                "generated",
                "kernels a call",
                "how",
                "",
            ]
            parts += [f"Launched as `{launch}`:", Table(titles, cells)]
    return Section("torch.compile", parts if len(parts) > 1 else [text, "Not measured."])
