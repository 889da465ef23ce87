# SPDX-License-Identifier: Apache-2.0
"""What the sections read: rows of the raw files by shape and contender."""

from .. import derive
from ..shapes import Shape
from ..store import Store, read_json

PEAK_TFLOPS = 989.4  # dense bf16 of an H100 or H200 SXM, which the paper divides by


class Data:
    def __init__(self, folder):
        self.store = Store(folder)
        self.folder = self.store.folder
        self.about = read_json(self.folder / "study.json")
        self.on_gpu = self.about["memory"] == "cuda"
        machine = self.store.documents("machine")
        self.machine = machine[0][1] if machine else None
        self.roofline = derive.read(self.store, derive.ROOFLINE)
        self.speedup = self.store.rows("speedup")
        self.failures = []

    @property
    def bench(self):
        return self.machine["bench"] if self.machine else {}

    @property
    def ceilings(self):
        return self.bench.get("ceilings") or {}

    @property
    def unfinished(self):
        """{experiment: units that a run was to measure and that have no raw file}."""
        planned = self.about.get("units", {})
        missing = {name: [key for key in keys if not self.store.has(name, key)] for name, keys in planned.items()}
        return {name: keys for name, keys in missing.items() if keys}

    def rows(self, experiment):
        return self.store.rows(experiment)


def shape_of(row):
    return Shape(row["model"], row["m"], row["n"], row["k"], row["dtype"])


def by_shape(rows, launch=None):
    """{Shape: {contender: row}} of the good rows, of one way of launching: the one asked for, or each contender's first
    of graph, stream and host. Smaller models first."""
    found = {}
    for row in rows:
        if row["status"] != "ok" or (launch and row.get("launch") != launch):
            continue
        contenders = found.setdefault(shape_of(row), {})
        known = contenders.get(row["contender"])
        if known is None or row.get("launch") == "graph":
            contenders[row["contender"]] = row
    return dict(sorted(found.items(), key=lambda item: (item[0].n * item[0].k, item[0].model, item[0].m)))


def ratio(contenders, baseline, ours="tileglu", field="median_us"):
    """How many times as long the baseline takes; None if either is missing."""
    if baseline not in contenders or ours not in contenders:
        return None
    return contenders[baseline][field] / contenders[ours][field]


def baseline_of(data):
    """What the host's page compares with where torch is not installed."""
    names = {row["contender"] for row in data.speedup if row["status"] == "ok"}
    return next((name for name in ("torch_eager", "cpu_two_gemms") if name in names), None)


def fastest(contenders, names):
    known = [name for name in names if name in contenders]
    return min(known, key=lambda name: contenders[name]["median_us"]) if known else None
