# SPDX-License-Identifier: Apache-2.0
"""The short table at the end of a run."""

from . import stats
from .store import Store

AGAINST = ("torch_eager", "torch_merged", "cublas_merged", "torch_gemm_only", "cpu_two_gemms")


def grid(rows):
    """{(model, m): {contender: row}} of the good rows, each contender as a graph where that was timed,
    else as stream or host."""
    found = {}
    for row in rows:
        if row["status"] != "ok" or row["launch"] == "external":
            continue
        contenders = found.setdefault((row["model"], row["m"]), {})
        if row["contender"] not in contenders or row["launch"] == "graph":
            contenders[row["contender"]] = row
    return found


def lines(folder):
    store = Store(folder)
    shapes = grid(store.rows("speedup"))
    if not shapes:
        return ["no speed-up rows yet"]
    against = [name for name in AGAINST if any(name in contenders for contenders in shapes.values())]
    table = [["model", "m", "tileglu us", *(f"x {name}" for name in against), "config"]]
    ratios = {name: [] for name in against}
    for (model, m), contenders in shapes.items():
        ours = contenders.get("tileglu")
        cells = [model, str(m), f"{ours['median_us']:.1f}" if ours else "-"]
        for name in against:
            known = ours and name in contenders
            if known:
                ratios[name].append(contenders[name]["median_us"] / ours["median_us"])
            cells.append(f"{ratios[name][-1]:.2f}" if known else "-")
        table.append([*cells, ours["config"] if ours else "-"])
    means = [stats.geometric_mean(ratios[name]) for name in against]
    table.append(["geometric mean", "", "", *(f"{mean:.2f}" if mean else "-" for mean in means), ""])
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in table]
