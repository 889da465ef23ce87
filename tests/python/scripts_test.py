# SPDX-License-Identifier: Apache-2.0
"""The measuring scripts for the GPU machine, on the CPU and a tiny model: that they measure, check and say why not."""

import json
import xml.etree.ElementTree as xml

import pytest

import tileglu

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")


@pytest.fixture(scope="module")
def bench(script):
    return script("bench_transformers")


@pytest.fixture(scope="module")
def models(bench):
    return bench.build("tiny", torch.device("cpu"))


def test_contenders_share_every_weight_and_one_is_patched(bench, models):
    plain, patched = models[bench.PLAIN], models[bench.PATCHED]
    assert all(a is b for a, b in zip(plain.parameters(), patched.parameters(), strict=True))
    import tileglu.transformers as fused

    assert fused.unpatch(plain) == 0 and len(fused.patch(patched).patched) == 0


@pytest.mark.parametrize("phase, mode", [("prefill", "eager"), ("decode", "eager"), ("decode", "compile")])
def test_cases(bench, models, phase, mode):
    torch._dynamo.reset()
    rows = bench.timed(models, "tiny", phase, 2, 8 if phase == "prefill" else 1, mode, 0.01)
    assert [row["contender"] for row in rows] == [bench.PLAIN, bench.PATCHED]
    assert all(row["status"] == "ok" and row["p5_us"] <= row["median_us"] <= row["p95_us"] for row in rows)
    assert "cpu" in rows[1]["config"] and rows[1]["samples"] >= 10
    assert "x" in bench.table(rows)[-1]


def test_logits_of_a_wrong_model_show(bench, models):
    rows = {row["contender"]: row["relative_error"] for row in bench.logits(models, "tiny", "logits", 2, 8)}
    assert 0 < rows[bench.PATCHED] < 0.05 and 0 < rows[bench.PLAIN] < 0.05
    other = bench.build("tiny", torch.device("cpu"))[bench.PATCHED]
    with torch.no_grad():
        other.model.layers[0].mlp.gate_proj.weight.mul_(-1)
    wrong = bench.logits({bench.PLAIN: models[bench.PLAIN], bench.PATCHED: other}, "tiny", "logits", 2, 8)
    assert wrong[1]["relative_error"] > 1.5 * rows[bench.PATCHED]


def test_a_failure_is_a_row(bench, models, tmp_path):
    run = bench.Run(str(tmp_path / "rows.json"), 30, torch.device("cpu"))
    run.case(bench.timed, models, "tiny", "prefill", 1, 8, "cuda_graph", 0.01)
    run.end = 0
    run.case(bench.timed, models, "tiny", "decode", 1, 1, "eager", 0.01)
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert [row["status"] for row in rows] == ["failed", "failed"] and "--budget" in rows[1]["reason"]
    assert all("failed" in line for line in bench.table(rows)[1:])


def test_results_of_pytest_become_rows(bench):
    import gpu_python

    report = xml.fromstring(
        '<s><testcase name="a" time="1.5"/><testcase name="b" time="0"><failure message="x\n y"/></testcase>'
        '<testcase name="c" time="0"><skipped message="no"/></testcase></s>'
    )
    rows = [gpu_python.row("torch", case) for case in report.iter("testcase")]
    assert [(row["test"], row["status"], row["reason"]) for row in rows] == [
        ("a", "passed", ""), ("b", "failed", "x y"), ("c", "skipped", "no"),
    ]  # fmt: skip
    assert gpu_python.summary(rows) == 1 and gpu_python.summary(rows[:1]) == 0 and gpu_python.summary(rows[2:]) == 1


def test_build_info_is_in_the_document(bench, tmp_path):
    assert bench.Run(str(tmp_path / "f"), 1, torch.device("cpu")).document["commit"] == tileglu.build_info()
