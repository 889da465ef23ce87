# SPDX-License-Identifier: Apache-2.0
"""scripts/bench_neighbours.py on the CPU and a tiny shape: that it checks, times, and says why not."""

import json
import sys
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
GATED = ("eager", "tileglu", "tileglu+prefetch")


@pytest.fixture(scope="module")
def bench(script):
    return script("bench_neighbours")


@pytest.fixture(scope="module")
def cases(script):
    return script("neighbour_cases")


@pytest.fixture
def arrays(bench):
    return bench.places.TorchArrays(torch, "cpu")


@pytest.fixture
def chain(bench, cases, arrays):
    from study.shapes import Shape

    return bench.Chain(Shape("tiny", 4, 96, 64), arrays)


def rows_of(bench, cases, chain, **contenders):
    settings = cases.timing.Settings(samples=5, warmup_s=0)
    return {row["contender"]: row for row in bench.rows_of(chain, cases.CONTENDERS | contenders, settings)}


def test_every_contender_has_a_time_or_a_reason(bench, cases, chain):
    rows = rows_of(bench, cases, chain)
    assert list(rows) == list(cases.CONTENDERS)
    assert (rows["merged"]["status"], rows["merged"]["reason"]) == ("skipped", "its backend needs a GPU")
    for name in (cases.WITHOUT, *GATED):
        row = rows[name]
        assert row["status"] == "ok" and 0 < row["relative_frobenius"] < 0.012 and len(row["samples_us"]) == 5, row
        assert row["p5_us"] <= row["median_us"] <= row["p95_us"] and row["layers"] == len(chain.sets) == 4
        assert row["marginal_us"] == pytest.approx(row["median_us"] - rows[cases.WITHOUT]["median_us"])
    lines = bench.table(list(rows.values()))
    assert len(lines) == 3 and lines[1].startswith("tiny") and "needs a GPU" in lines[2]


@pytest.mark.parametrize("fault", ["the weights of another layer", "one row not written", "a wrong sign in one layer"])
def test_a_wrong_contender_gets_no_time(bench, cases, chain, fault):
    right = cases.eager.eager(chain)

    def call(index):
        if fault.startswith("the weights"):
            chain.sets[0].x = chain.sets[index].x
            return right.call(0)
        y = right.call(index)
        if fault.startswith("one row"):
            chain.y[1:] = y[1:]
            return chain.y
        return -y if index == 3 else y

    row = rows_of(bench, cases, chain, wrong=lambda _case: cases.Prepared(call))["wrong"]
    assert row["status"] == "failed" and row["reason"].startswith("wrong: ") and row["median_us"] is None, row


def test_prefetch_is_asked_of_the_plan(cases, chain, monkeypatch):
    import tileglu

    asked, plan = [], tileglu.plan
    monkeypatch.setattr(tileglu, "plan", lambda *sizes, **options: asked.append(options) or plan(*sizes, **options))
    cases.CONTENDERS["tileglu"](chain)
    cases.CONTENDERS[cases.PREFETCH](chain)
    assert [options.get("prefetch_weights", False) for options in asked] == [False, True]


@pytest.mark.parametrize("n, k", [(4864, 896), (29568, 8192)])
def test_weights_come_cold_on_a_gpu(cases, n, k):
    from study.shapes import Shape

    gpu = SimpleNamespace(memory="cuda", cache_bytes=lambda: 60 << 20)
    layers = cases.layers_of(Shape("x", 1, n, k), gpu)
    assert layers >= 4 and layers * 2 * n * k >= 3 * (60 << 20)


def test_a_graph_is_captured_after_a_warm_up_and_fills_a_sample(cases, monkeypatch):
    from study.shapes import Shape

    log, shape = [], Shape("x", 1, 4864, 896)
    gpu = SimpleNamespace(memory="cuda", torch="torch", synchronize=lambda: log.append("synchronize"))
    monkeypatch.setattr(cases.timing, "GraphRunner", lambda *arguments: log.append("capture") or arguments)
    chain = SimpleNamespace(arrays=gpu, shape=shape, sets=[None] * 22)
    call = lambda _index: log.append("call")
    torch_, call_, sets, chains = cases.make_runner(chain, call, cases.SETTINGS)
    assert log == ["call", "call", "synchronize", "capture"] and (torch_, call_, sets) == ("torch", call, 1)
    least_us = 22 * 1.5 * shape.weight_bytes / 4.5e6  # of one chain
    assert (chains - 1) * least_us < cases.SETTINGS.sample_us <= chains * least_us


def test_the_file_is_complete_after_each_case(bench, cases, chain, arrays, tmp_path):
    run = bench.Run(tmp_path / "rows.json", 60, arrays)

    def broken(_case):
        raise RuntimeError("no such kernel\nand more")

    run.case(chain.shape, cases.CONTENDERS | {"tileglu": broken})
    rows = {row["contender"]: row for row in json.loads(run.output.read_text())["rows"]}
    assert rows["tileglu"]["reason"] == "no such kernel" and rows["eager"]["status"] == "ok"
    run.end = 0
    run.case(chain.shape, cases.CONTENDERS)
    document = json.loads(run.output.read_text())
    late = document["rows"][len(rows) :]
    assert len(late) == len(rows) and all(row["status"] == "failed" and "--budget" in row["reason"] for row in late)
    assert document["schema_version"] == 1 and document["environment"]["packages"]["torch"] in torch.__version__
    assert len(bench.table(document["rows"])) >= 3


def test_without_a_gpu_it_says_so(bench, tmp_path, monkeypatch, capsys):
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    monkeypatch.setattr(sys, "argv", ["bench_neighbours.py", "--output", str(tmp_path / "x.json")])
    with pytest.raises(SystemExit) as ended:
        bench.main()
    assert ended.value.code == 3 and "no Hopper GPU" in capsys.readouterr().err and not (tmp_path / "x.json").exists()
