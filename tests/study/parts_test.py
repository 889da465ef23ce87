# SPDX-License-Identifier: Apache-2.0
"""Parts of the study, each with a planted fault: what decides whether a figure is kept and where it comes from."""

import json
import statistics
import time
from types import SimpleNamespace

import numpy
import pytest

from study import arrays, layers, measure, progress, stats, store
from study.case import Case, gated, relative_frobenius, share_over_1_percent
from study.contenders import NotFound, Prepared, Skip
from study.report import figures, html, markdown
from study.report.page import Figure, Link, Section, Table
from study.shapes import Shape
from study.timing import Settings, race

SHAPE = Shape("tiny", 8, 16, 32)
FAST = Settings(samples=3, sample_us=10, warmup_s=0)


@pytest.fixture
def case():
    return Case(SHAPE, arrays.NumpyArrays())


def exact(case, scale=1.0, rows=slice(None)):
    """A contender that writes the right result, scaled, into some rows of Y."""

    def call(index):
        operands = case.sets[index]
        wide = operands.x.astype(numpy.float64) @ operands.gate_up.astype(numpy.float64).T
        operands.y[rows] = (gated(wide) * scale)[rows]
        return operands.y

    return Prepared(call, "exact")


def rows_of(case, **contenders):
    return {row["contender"]: row for row in measure.rows_of(case, contenders, FAST)}


def test_a_right_contender_is_timed(case):
    row = rows_of(case, right=exact)["right"]
    assert row["status"] == "ok" and len(row["samples_us"]) == FAST.samples
    assert row["median_us"] == pytest.approx(statistics.median(row["samples_us"]), abs=1e-3)
    assert row["tflops"] == pytest.approx(4 * 8 * 16 * 32 / row["median_us"] * 1e-6)


def test_nobody_always_follows_the_same_contender():
    order = []
    runners = {name: SimpleNamespace(sample_us=lambda name=name: order.append(name) or 1.0) for name in "abcd"}
    samples = race(runners, Settings(samples=30, warmup_s=0))
    assert all(samples[name] == [1.0] * 30 for name in runners)
    rounds = [order[start : start + 4] for start in range(4, len(order), 4)]  # after the warm-up
    assert all(sorted(names) == list("abcd") for names in rounds)
    pairs = {pair for names in rounds for pair in zip(names, names[1:])}
    assert len(pairs) == 12


@pytest.mark.parametrize("fault", [{"scale": 1.05}, {"rows": slice(0, 7)}, {"scale": -1.0}])
def test_a_wrong_contender_gets_no_time(case, fault):
    row = rows_of(case, wrong=lambda case: exact(case, **fault))["wrong"]
    assert row["status"] == "failed" and row["reason"].startswith("wrong: ") and row["median_us"] is None


def test_whatever_a_contender_raises_is_its_row(case):
    def raising(error):
        def prepare(_case):
            raise error

        return prepare

    def late(case):
        calls = []

        def call(index):
            calls.append(index)
            if len(calls) > len(case.sets) + 10:
                raise RuntimeError("out of luck")
            return exact(case).call(index)

        return Prepared(call)

    found = rows_of(case, skip=raising(Skip("not here")), lost=raising(NotFound("no such package")),
                    broken=raising(MemoryError()), late=late, right=exact)  # fmt: skip
    assert [found[name]["status"] for name in ("skip", "lost", "broken", "late", "right")] == [
        "skipped", "not_found", "failed", "failed", "ok",
    ]  # fmt: skip
    assert found["broken"]["reason"] == "MemoryError" and found["late"]["reason"] == "out of luck"


def test_metrics():
    expected = numpy.array([[1.0, -2.0, 0.0, 4.0]])
    found = numpy.array([[1.005, -2.1, 1e-9, 4.0]])
    assert share_over_1_percent(found, expected) == 0.5
    assert relative_frobenius(found, expected) == pytest.approx(numpy.hypot(0.005, 0.1) / numpy.sqrt(21), rel=1e-3)


@pytest.mark.parametrize("group", [1, 8])
def test_interleaved_weights(case, group):
    both = case.interleaved(group)[0]
    first = case.sets[0]
    for row in range(SHAPE.n):
        at = 2 * (row // group) * group + row % group
        assert (both[at] == first.gate[row]).all() and (both[at + group] == first.up[row]).all()


def test_percentiles():
    values = [5.0, 1.0, 3.0, 2.0, 4.0]
    assert stats.summary(values) == {"median_us": 3.0, "p5_us": pytest.approx(1.2), "p95_us": pytest.approx(4.8)}
    assert stats.geometric_mean([1.0, 4.0]) == pytest.approx(2.0)


def test_no_part_of_a_file_is_left(tmp_path):
    with pytest.raises(ValueError):
        store.write_json(tmp_path / "x.json", {"value": float("nan")})
    with pytest.raises(TypeError):
        store.write_text(tmp_path / "y.txt", 5)
    assert list(tmp_path.iterdir()) == []


def test_a_raw_file_of_another_schema_is_refused(tmp_path):
    (tmp_path / "x.json").write_text(json.dumps({"schema_version": 99}))
    with pytest.raises(ValueError, match="schema_version is 99"):
        store.read_json(tmp_path / "x.json")
    (tmp_path / "x.json").write_text('{"rows": [')
    with pytest.raises(ValueError, match="x.json: "):
        store.read_json(tmp_path / "x.json")


def test_raw_files_in_the_order_of_their_numbers(tmp_path):
    keep = store.Store(tmp_path)
    for key in ("qwen2.5-14b-m8", "qwen2.5-7b-m16", "qwen2.5-7b-m8"):
        keep.keep("speedup", key, {"rows": []})
    names = [name for name, _ in keep.documents("speedup")]
    assert [name.rsplit("/", 1)[1] for name in names] == [
        "qwen2.5-7b-m8.json",
        "qwen2.5-7b-m16.json",
        "qwen2.5-14b-m8.json",
    ]


def test_progress_corrects_its_estimate(monkeypatch):
    bar = progress.Progress(100)
    bar.done, bar.started = 25.0, bar.started - 50
    assert bar.eta() == pytest.approx(150, abs=1) and progress.clock(150) == "2:30"


@pytest.mark.parametrize(
    "setup_s, first_s, budget, wanted", [(0, 0, 60, (2, 0)), (0.3, 0, 0.25, (0, 2)), (0, 1, 2, (1, 1))]
)
def test_the_budget_counts_what_setting_up_and_slow_units_took(setup_s, first_s, budget, wanted, tmp_path, monkeypatch):
    """Units that are estimated at 20 ms each."""
    from study import derive, presets, run
    from study.experiments import Context, Unit

    def make_context(_options):
        time.sleep(setup_s)
        return Context(arrays.NumpyArrays(), presets.CPU, "bf16"), ""

    units = [
        Unit("a", "1", 0.02, lambda: time.sleep(first_s) or {"rows": []}), Unit("a", "2", 0.02, lambda: {"rows": []})
    ]  # fmt: skip
    monkeypatch.setattr(run, "make_context", make_context)
    monkeypatch.setattr(run, "units_of", lambda _context, _only: units)
    monkeypatch.setattr(derive, "all_files", lambda _store: None)
    options = SimpleNamespace(only=(), again=False, budget=budget)
    assert run.run(tmp_path, options, ["study"])[:2] == wanted
    assert store.read_json(tmp_path / "study.json")["units"] == {"a": ["1", "2"]}


def test_layers_survive_extraction(tmp_path):
    values = {"model.layers.0.mlp.gate_proj.weight": (4, 2), "model.layers.0.mlp.up_proj.weight": (4, 2)}
    bits = {name: numpy.arange(8, dtype="<u2") * 257 + at for at, name in enumerate(values)}
    source, target = tmp_path / "a", tmp_path / "b"
    source.mkdir()
    layers.write(source / layers.MODEL, {name: (list(shape), bits[name].tobytes()) for name, shape in values.items()})
    layers.write(source / layers.INPUTS, {"layers.0.x": ([3, 2], numpy.arange(6, dtype="<u2").tobytes())})
    layers.extract(source, target)
    x, weights = layers.load(target, 0)
    wanted = numpy.concatenate([b.astype(numpy.uint32) << 16 for b in bits.values()]).view(numpy.float32).reshape(8, 2)
    assert x.shape == (3, 2) and (weights == wanted).all()


def test_page_as_html_and_markdown(tmp_path):
    table = Table(["a", "b"], [["<x|y>", Link("raw", "raw/x.json")], ["`k`", None]])
    figure = figures.draw(tmp_path, Figure("f", "Title & more", "what it shows"), {"s": {"x": [1, 2], "y": [3, 4]}},
                          ["raw/x.json"], "x", "y")  # fmt: skip
    sections = [Section("One & two", ["a *b* **c**", table, figure])]
    page = html.write("T", sections, tmp_path)
    assert "&lt;x|y&gt;" in page and '<a href="raw/x.json">raw</a>' in page and "<strong>c</strong>" in page
    assert "<svg" in page and 'href="data/f.json"' in page and 'id="one-two"' in page
    text = markdown.write("T", sections)
    assert "<x\\|y>" in text and "[raw](raw/x.json)" in text and "![what it shows](figures/f.svg)" in text


def test_figures_take_the_colour_of_the_page(tmp_path):
    figure = figures.draw(tmp_path, Figure("f", "t", "a"), {"s": {"x": [1, 2], "y": [3, 4]}}, ["raw/x.json"], "x", "y",
                          levels={"one": 1.0})  # fmt: skip
    svg = (tmp_path / figure.svg).read_text()
    assert figures.INK not in svg and "currentColor" in svg and "prefers-color-scheme:dark" in svg
    assert "#ffffff" not in svg.lower()  # no white background
    data = json.loads((tmp_path / figure.data).read_text())
    assert data["series"]["s"] == {"x": [1, 2], "y": [3, 4]} and data["sources"] == ["raw/x.json"]
