# SPDX-License-Identifier: Apache-2.0
"""The page of a study of a GPU, from made-up raw files whose figures are known: what each claim says of them."""

import json
import shutil

import pytest

from study import derive, presets, store
from study.report import render
from study.shapes import Shape

SIZES = {"qwen2.5-0.5b": (4864, 896), "qwen2.5-72b": (29568, 8192)}
BATCHES = (1024, 4096)
TIMES = {"torch_eager": 4.0, "torch_merged": 3.0, "cublas_merged": 2.5, "paired": 1.0, "tileglu": 1.0}  # of a unit
KERNEL_1, KERNEL_2 = {1024: 1.2, 4096: 0.8}, 1.1  # Kernel-1 wins at M = 4096
UNIT_US = 1000.0


def row(shape, contender, us, **more):
    return (
        shape.describe()
        | {
            "contender": contender,
            "config": contender,
            "layout": "separate",
            "launch": "graph",
            "status": "ok",
            "reason": "",
            "median_us": us,
            "p5_us": us,
            "p95_us": us,
            "tflops": shape.flops / us * 1e-6,
            "gbps": shape.bytes / us * 1e-3,
            "samples_us": [us],
        }
        | more
    )


def error(share):
    return {"share_over_1_percent": share, "relative_frobenius": share / 10}


def keep_units(keep, shape):
    times = TIMES | {"sync_pingpong": KERNEL_1[shape.m], "interleave_by_1": KERNEL_2}
    rows = [row(shape, name, UNIT_US * time) for name, time in times.items()]
    rows.append(row(shape, "torch_eager", 5 * UNIT_US, launch="stream"))
    rows.append(row(shape, "tileglu", 2 * UNIT_US, launch="stream"))
    keep.keep("speedup", shape.key, {"rows": rows, "sensors_at_end": {"sm_clock_mhz": 1700, "power_watts": None}})
    times = {
        "mlp_us": 10.0,
        "products_us": 8.0,
        "share_by_time": 0.2,
        "share_by_profile": 0.1 if shape.m == 1024 else None,
    }
    keep.keep(
        "share",
        shape.key,
        {"rows": [shape.describe() | times | {"contender": "torch_eager", "status": "ok", "reason": ""}]},
    )
    compiled = [
        row(shape, "torch_eager", 4.0),
        row(shape, "torch_compile", 8.0, kernels_per_call=3, generated_kernels=1),
        row(shape, "tileglu", 2.0),
    ]
    keep.keep("compile", shape.key, {"rows": compiled})
    keep.keep("end_to_end", shape.key, {"rows": compiled})
    watts = {"call_us": 10.0, "watts": 500.0, "joules_per_call": 5e-3, "counter_joules_per_call": 6e-3}
    keep.keep(
        "energy",
        shape.key,
        {"rows": [shape.describe() | watts | {"contender": "torch_eager", "status": "ok", "reason": ""}]},
    )
    numbers = [
        shape.describe()
        | {
            "contender": name,
            "data": "normal",
            "status": "ok",
            "reason": "",
            "config": "",
            "operands": error(share),
            "unrounded": error(10 * share),
        }
        for name, share in (("torch_eager", 0.01), ("tileglu", 0.001))
    ]
    keep.keep("numerics", shape.key, {"rows": numbers})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    keep = store.Store(tmp_path_factory.mktemp("gpu"))
    about = {
        "memory": "cuda",
        "preset": "full",
        "why_not_gpu": "",
        "dtype": "bf16",
        "samples": 1,
        "sample_us": 1.0,
        "command": "study run",
        "paper_models": presets.PAPER_MODELS,
        "paper_batches": presets.PAPER_BATCHES,
    }
    store.write_json(keep.folder / "study.json", {"schema_version": 1, **about})
    device = {"name": "GPU of the test", "sm_count": 132}
    bench = {
        "device": "GPU of the test",
        "commit": "c",
        "version": "v",
        "environment": {"device": device},
        "peak": {"tflops": 1070.0, "gbps": 4800.0},
        "ceilings": {"gemm_tflops": 800.0, "read_gbps": 4500.0, "copy_gbps": 4200.0},
    }
    keep.keep(
        "machine", "bench", {"rows": [], "bench": bench, "python": "3", "system": "s", "packages": {"torch": None}}
    )
    for model, (n, k) in SIZES.items():
        for m in BATCHES:
            keep_units(keep, Shape(model, m, n, k))
    derive.all_files(keep)
    assert keep.folder / "data" / "claims.json" in render.render(keep.folder)
    return keep.folder


@pytest.fixture(scope="module")
def claims(folder):
    lines = (folder / "report.md").read_text().splitlines()
    start = lines.index("## The paper's claims")
    rows = [line.split(" | ") for line in lines[start : start + 14] if line.startswith("| ")]
    return {cells[0].strip("| "): cells[2] for cells in rows[1:]}


@pytest.mark.parametrize(
    "claim, ours",
    [
        ("Kernel-1 (`sync_pingpong`) wins", "2 of 4 between the paper's two; 2 among all kernels"),
        ("Kernel-2 (`interleave_by_1`) wins", "2 of 4 between the paper's two; 0 among all kernels"),
        ("highest speed-up over PyTorch eager", "4.00x as `graph`"),
        ("highest speed-up over PyTorch eager", "2.50x as `stream`"),
        ("speed-up at 72B and large M", "4.00x to 4.00x"),
        ("intermediates and activation in the unfused MLP", "by profile 10.0%"),
        ("intermediates and activation in the unfused MLP", "by time 20.0%"),
        ("torch.compile for this pattern", "`torch_compile` 50% to 50% of eager, 3 kernels a call"),
        ("elements more than 1 % off", "`torch_eager` 1.000% to 1.00% against fp64 on the operands"),
        ("elements more than 1 % off", "`tileglu` 1.000% to 1.00% against fp64 before they were rounded"),
        ("rise of arithmetic intensity", "+247% at qwen2.5-0.5b, M = 4096"),
    ],
)
def test_claims(claims, claim, ours):
    assert ours in claims[claim]


def test_utilisation_is_that_of_the_fastest_kernel(claims):
    rate = Shape("", 4096, *SIZES["qwen2.5-72b"]).flops / (UNIT_US * KERNEL_1[4096]) * 1e-6
    assert (
        f"{rate / 989.4:.1%}; {rate / 800:.1%} of the 8192³ GEMM of the same run (`sync_pingpong`"
        in claims["peak BF16 utilisation"]
    )


def test_fusion_efficiency_is_by_bytes_over_bandwidth(folder, claims):
    n, k = SIZES["qwen2.5-0.5b"]
    saved = 2 * (1024 * k + 6 * 1024 * n)
    predicted = 4000 / (4000 - saved / 4500 * 1e-3)
    found = json.loads((folder / derive.ROOFLINE).read_text())["fusion"]
    entry = next(
        f
        for f in found
        if (f["m"], f["n"], f["contender"], f["baseline"], f["launch"]) == (1024, n, "tileglu", "torch_eager", "graph")
    )
    assert entry["predicted_speedup"] == pytest.approx(predicted) and entry["efficiency"] == pytest.approx(
        4 / predicted
    )
    assert f"{4 / predicted:.0%}" in claims["fusion efficiency"]


def test_every_claim_is_measured_and_says_so(folder):
    text = (folder / "report.md").read_text()
    assert "not measured" not in text and "without a GPU" not in text and "1700 … 1700" in text


def claims_file(folder):
    return store.read_json(folder / "data" / "claims.json")


def test_the_claims_file_holds_the_pages_table(folder, claims):
    document = claims_file(folder)
    assert (document["device"], document["commit"], document["unfinished"]) == ("GPU of the test", "c", {})
    assert {row["claim"]: row["ours"] for row in document["rows"]} == claims and len(claims) == 10
    assert all(row["paper"] and row["why"] and (folder / row["source"]).exists() for row in document["rows"])


def test_the_claims_file_counts_what_is_unfinished(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy")
    about = store.read_json(folder / "study.json") | {"units": {"share": ["a", "b"]}}
    store.write_json(tmp_path / "copy" / "study.json", about)
    render.render(tmp_path / "copy")
    assert claims_file(tmp_path / "copy")["unfinished"] == {"share": 2}


def test_a_claim_without_rows_is_not_measured(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy")
    shutil.rmtree(tmp_path / "copy" / "raw" / "share")
    render.render(tmp_path / "copy")
    text = (tmp_path / "copy" / "report.md").read_text()
    line = next(line for line in text.splitlines() if line.startswith("| intermediates and activation"))
    assert "not measured" in line
    row = next(row for row in claims_file(tmp_path / "copy")["rows"] if row["claim"].startswith("intermediates"))
    assert (row["ours"], row["why"], row["source"]) == (None, "", None) and "9–37 %" in row["paper"]


def test_a_damaged_study_is_refused(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy")
    next((tmp_path / "copy" / "raw" / "speedup").glob("*.json")).write_text('{"schema_version": 1, "rows": [{}]}')
    with pytest.raises(KeyError):
        render.render(tmp_path / "copy")
