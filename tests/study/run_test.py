# SPDX-License-Identifier: Apache-2.0
"""The whole path on the CPU: measure, resume, `tileglu report`, the page in a browser."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = os.environ.get("TILEGLU_TOOL", str(ROOT / "build" / "bin" / "tileglu"))
SMALL = ["--device=cpu", "--models=smollm2-135m", "--m=1,4"]
EXPERIMENTS = ("machine", "speedup", "share", "numerics", "end_to_end", "energy", "compile")
ROW = (
    "model",
    "m",
    "n",
    "k",
    "dtype",
    "contender",
    "config",
    "median_us",
    "p5_us",
    "p95_us",
    "tflops",
    "gbps",
    "status",
    "reason",
)


def environment(**more):
    # One thread: cores of a machine that builds at the same time are not worth waiting for.
    return os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"} | more


def study(*arguments, code=0):
    done = subprocess.run(
        [sys.executable, "-m", "study", *map(str, arguments)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def report(*arguments, code=0, **variables):
    done = subprocess.run(
        [TOOL, "report", *map(str, arguments)],
        env=environment(**({"TILEGLU_PYTHON": sys.executable} | variables)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("a study")  # a space, as users have
    study("run", folder, *SMALL)
    return folder


@pytest.fixture(scope="module")
def page(folder):
    report(folder)
    return folder / "report.html"


def documents(folder):
    return {path: json.loads(path.read_text()) for path in sorted((folder / "raw").rglob("*.json"))}


def test_every_experiment_has_its_raw_files(folder):
    assert {path.parent.name for path in documents(folder)} == set(EXPERIMENTS)


def test_every_contender_has_a_row_with_a_time_or_a_reason(folder):
    from study import contenders
    from study.contenders import compiled

    for path in (folder / "raw" / "speedup").glob("*.json"):
        rows = json.loads(path.read_text())["rows"]
        assert {row["contender"] for row in rows} == set(contenders.table()) - set(compiled.CONTENDERS)
        for row in rows:
            assert all(name in row for name in ROW), row
            assert (row["median_us"] is not None) == (row["status"] == "ok") and bool(row["reason"]) == (
                row["status"] != "ok"
            ), row
        ours = {row["contender"]: row for row in rows}["tileglu"]
        assert ours["status"] == "ok" and ours["relative_frobenius"] < 0.01 and ours["config"].startswith("cpu ")


def test_a_run_goes_on_where_it_was_interrupted(folder):
    paths = list(documents(folder))
    missing = next(path for path in paths if path.parent.name == "speedup")
    before = {path: path.stat().st_mtime_ns for path in paths if path != missing}
    missing.unlink()
    done = study("run", folder, *SMALL)
    assert "1 units measured" in done.stdout and missing.exists()
    assert before == {path: path.stat().st_mtime_ns for path in before}
    assert "100%" not in done.stderr and "to go" in done.stderr


def test_a_run_goes_on_in_a_folder_restored_from_a_tar(folder, tmp_path):
    kept, left = tmp_path / "kept.tar", re.compile("raw/numerics|m4|data|report")
    with tarfile.open(kept, "w") as tar:
        tar.add(folder, "study", filter=lambda entry: None if left.search(entry.name) else entry)
    with tarfile.open(kept) as tar:
        tar.extractall(tmp_path)
    restored = tmp_path / "study"
    before = {path: path.stat().st_mtime_ns for path in documents(restored)}
    missing = len(documents(folder)) - len(before)
    assert missing > 2 and before
    report(restored)
    page = (restored / "report.md").read_text()
    assert "**Unfinished units:** speedup 1" in page and "numerics 6" in page
    assert f"0 units measured, {missing} left over" in study("run", restored, *SMALL, "--budget=0.001").stdout
    assert f"{missing} units measured, 0 left over" in study("run", restored, *SMALL, "--budget=500").stdout
    assert before == {path: path.stat().st_mtime_ns for path in before}
    report(restored)
    assert "Unfinished units" not in (restored / "report.md").read_text()


def test_a_folder_is_of_one_dtype(folder):
    error = study("run", folder, *SMALL, "--dtype=fp16", code=2).stderr
    assert "dtype bf16" in error and "fp16" in error


def test_budget_and_choice(tmp_path):
    done = study("run", tmp_path / "a", *SMALL, "--only=numerics", "--budget=0.001")
    assert "0 units measured, 6 left over" in done.stdout and not (tmp_path / "a" / "raw").exists()
    assert "numerics" in study("plan", *SMALL).stdout


@pytest.mark.parametrize(
    "arguments, code, names",
    [
        (("run", "x", "--only=speed"), 2, ("--only=speed", "speedup")),
        (("run", "x", "--m=0"), 2, ("--m=0",)),
        (("run", "x", "--models=qwen9"), 2, ("qwen9",)),
        (("run", "x", "--checkpoint=/nowhere"), 2, ("/nowhere",)),
        (("run", "x", "--device=cuda"), 3, ("--device=cuda",)),
        (("frobnicate",), 2, ("frobnicate",)),
    ],
)
def test_wrong_arguments(arguments, code, names, tmp_path):
    if "--device=cuda" in arguments and shutil.which("nvidia-smi"):
        pytest.skip("there is a GPU here")
    arguments = [str(tmp_path / "x") if argument == "x" else argument for argument in arguments]
    error = study(*arguments, code=code).stderr
    assert error.startswith("study: ") and error.count("\n") == 1 and all(name in error for name in names), error


def test_roofline_of_the_grid(folder):
    found = json.loads((folder / "data" / "roofline.json").read_text())
    row = next(row for row in found["rows"] if row["m"] == 4)
    n, k = row["n"], row["k"]
    assert row["paths"]["fused"]["bytes"] == 2 * (4 * k + 2 * n * k + 4 * n)
    assert row["paths"]["two_gemms"]["bytes"] == 2 * (8 * k + 2 * n * k + 28 * n)
    assert {point["contender"] for point in found["points"]} >= {"tileglu", "cpu_two_gemms"}


# --- the page ---------------------------------------------------------------------------------------------------------


class Links(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.loaded, self.tables, self.cells = [], [], [], []
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if tag == "a":
            self.links.append(found["href"])
        if tag in ("script", "link", "img", "iframe", "object"):
            self.loaded.append(found.get("src") or found.get("href") or tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        self.inside = tag in ("td", "th") or self.inside
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.tables[-1][-1][-1] += data


def test_page_needs_nothing_else(page):
    text = page.read_text()
    assert Links(text).loaded == ["data:,"]  # the icon
    assert not re.search(r"url\((?!#)|@import|src=", text)


def test_links_lead_to_files(page):
    for text in (Links(page.read_text()).links, re.findall(r"\]\(([^)]+)\)", (page.parent / "report.md").read_text())):
        assert len(text) > 10
        for link in text:
            assert link.startswith("#") or (page.parent / link).exists(), link


def test_every_figure_names_raw_files_that_exist(page):
    figures = [path for path in (page.parent / "data").glob("*.json") if "figure" in json.loads(path.read_text())]
    assert figures
    for path in figures:
        sources = json.loads(path.read_text())["sources"]
        assert sources and all((page.parent / source).exists() for source in sources), path


def test_numbers_come_from_the_samples(page):
    """The median in the page's table is that of the raw samples."""
    import statistics

    grid = next(table for table in Links(page.read_text()).tables if "tileglu" in table[0])
    for path in (page.parent / "raw" / "speedup").glob("*.json"):
        rows = {row["contender"]: row for row in json.loads(path.read_text())["rows"]}
        shown = next(cells for cells in grid if cells[1] == str(rows["tileglu"]["m"]))[grid[0].index("tileglu")]
        assert float(shown) == pytest.approx(statistics.median(rows["tileglu"]["samples_us"]), abs=0.6)


def test_claims_are_not_measured_without_a_gpu(page):
    text = page.read_text()
    claims = Links(text).tables[0]
    assert len(claims) == 11 and all(cells[2] == "not measured" for cells in claims[1:])
    assert "made without a GPU" in text
    rows = json.loads((page.parent / "data" / "claims.json").read_text())["rows"]
    assert len(rows) == 10 and all(row["ours"] is None for row in rows)


def test_markdown_holds_the_same_tables(page):
    lines = [line for line in (page.parent / "report.md").read_text().splitlines() if line.startswith("| ")]
    assert len(lines) == sum(map(len, Links(page.read_text()).tables))


def test_report_as_json(folder):
    document = json.loads(report(folder, "--json").stdout)
    assert document["schema_version"] == 1 and document["command"] == "report"
    assert {Path(name).suffix for name in document["files"]} == {".html", ".md", ".svg", ".json"}
    assert all(Path(name).exists() for name in document["files"])


def test_report_refuses(folder, tmp_path):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)
    before = sorted(path.name for path in folder.iterdir())
    for arguments, code, name in (
        ((tmp_path / "none",), 2, "none"),
        ((tmp_path,), 2, "study.json"),
        ((folder, "--python", "/nowhere/python"), 3, "/nowhere/python"),
        ((folder, "--python", bare), 3, "matplotlib"),
    ):
        error = report(*arguments, code=code).stderr
        assert error.startswith("tileglu report: ") and error.count("\n") == 1 and name in error, error
    assert before == sorted(path.name for path in folder.iterdir())


# --- a browser --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not found:
        pytest.skip("no Chromium here")
    return found


def opened(browser, page, folder, *flags):
    """(screenshot's bytes, messages of the console)."""
    shot = folder / "shot.png"
    shot.unlink(missing_ok=True)
    done = subprocess.run(
        [
            browser,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={folder}/profile",
            "--enable-logging=stderr",
            "--window-size=1200,3000",
            f"--screenshot={shot}",
            *flags,
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert shot.exists(), done.stderr[-2000:]
    return shot.read_bytes(), [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def pixels(data, tmp_path):
    from matplotlib import image

    path = tmp_path / "read.png"
    path.write_bytes(data)
    return image.imread(path)[..., :3]


def test_page_in_a_browser(browser, page, tmp_path):
    light, messages = opened(browser, page, tmp_path)
    assert messages == []
    dark, messages = opened(browser, page, tmp_path, "--force-dark-mode", "--blink-settings=preferredColorScheme=0")
    assert messages == []
    light, dark = pixels(light, tmp_path), pixels(dark, tmp_path)
    assert light.shape[:2] == (3000, 1200)
    assert light.mean() > 0.7 and dark.mean() < 0.4  # a white page and a black one
    for shot in (light, dark):
        assert shot.std() > 0.03  # and something on it
        blue = (abs(shot - (0x00 / 255, 0x72 / 255, 0xB2 / 255)) < 0.05).all(axis=-1)
        assert blue.sum() > 200  # the first series of the figures


def test_the_browser_test_can_fail(browser, tmp_path):
    broken = tmp_path / "broken.html"
    broken.write_text("<!doctype html><title>x</title><script>nobody()</script>")
    assert opened(browser, broken, tmp_path)[1]
