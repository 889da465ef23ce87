#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the GPU part of tests/python and the Python examples on a machine with a Hopper GPU, and records each result.

    scripts/gpu_python.py --output benchmarks/h200/python.json [--library build/bin/libtileglu.so.0] [--budget SECONDS]

The suites run side by side, each in a process of its own: one that crashes, hangs or lacks its framework is a row that
says so. Exit code 0 if something passed and nothing failed, 3 without a Hopper GPU.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GPU = ["-m", "gpu"]
SUITES = {
    "torch": GPU, "formulas": GPU, "transformers": GPU, "cupy": GPU, "jax": GPU, "field_cases_torch": GPU, "examples": [],
}  # fmt: skip (and what is selected)
FACTS = """
import importlib, json, sys
found = {"python": sys.version.split()[0]}
for name in ("numpy", "torch", "transformers", "triton", "jax", "cupy"):
    try:
        found[name] = importlib.import_module(name).__version__
    except Exception as error:
        found[name] = type(error).__name__
import tileglu
found["tileglu"] = tileglu.build_info()
found["backends"] = tileglu.backends()
try:
    import torch
    found["device"] = torch.cuda.get_device_name()
except Exception:
    found["device"] = "none"
print(json.dumps(found))
"""


def start(suite, selection, folder, environment):
    """(process, its log, its JUnit file)"""
    log, junit = folder / f"{suite}.log", folder / f"{suite}.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={junit}", *selection]
    with open(log, "w") as file:
        process = subprocess.Popen(
            [*command, f"tests/python/{suite}_test.py"], cwd=ROOT, env=environment, stdout=file, stderr=file
        )
    return process, log, junit


def rows_of(suite, process, log, junit, end):
    """The suite's results, once it has ended or `end` has come."""
    reason = ""
    try:
        code = process.wait(max(1, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        code, reason = None, "not done within --budget"
    rows = [row(suite, case) for case in xml.parse(junit).iter("testcase")] if junit.exists() else []
    complete = code in (0, 1, 5) and rows  # pytest's codes for passed, failed, nothing collected
    if not complete:
        reason = reason or f"pytest ended with code {code}: {' '.join(log.read_text().split()[-40:])}"
        rows.append({"suite": suite, "test": "", "status": "failed", "seconds": 0, "reason": reason})
    return rows


def row(suite, case):
    bad = [child for child in case if child.tag in ("failure", "error", "skipped")]
    status = "passed" if not bad else "skipped" if bad[0].tag == "skipped" else "failed"
    reason = " ".join(bad[0].get("message", "").split())[:400] if bad else ""
    return {"suite": suite, "test": case.get("name"), "status": status, "seconds": round(float(case.get("time")), 2),
            "reason": reason}  # fmt: skip


def facts(environment):
    done = subprocess.run([sys.executable, "-c", FACTS], env=environment, capture_output=True, text=True, check=False)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {"error": done.stderr[-400:]}


def write(path, document):
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + ".new")
    new.write_text(json.dumps(document, indent=1) + "\n")
    os.replace(new, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--library", type=Path, default=ROOT / "build/bin/libtileglu.so.0", help="%(default)s")
    parser.add_argument("--budget", type=float, default=120, help="seconds in all (%(default)s)")
    options = parser.parse_args()
    if not options.library.exists():
        parser.exit(2, f"--library={options.library}: no such file\n")
    environment = {
        **os.environ, "TILEGLU_LIBRARY": str(options.library.resolve()), "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(ROOT / "python"), "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }  # fmt: skip
    end = time.monotonic() + options.budget
    with tempfile.TemporaryDirectory() as folder:
        running = {name: start(name, selection, Path(folder), environment) for name, selection in SUITES.items()}
        environment_facts = facts(environment)
        rows = [row for suite, parts in running.items() for row in rows_of(suite, *parts, end)]
    method = "pytest on the tests marked gpu and on every script of examples/python; one process a suite, side by side"
    write(options.output, {"schema_version": 1, "command": "gpu_python", "device": environment_facts.get("device"),
                           "method": method, "environment": environment_facts, "rows": rows})  # fmt: skip
    code = summary(rows)
    missing = environment_facts.get("backends", {}).get("sm90", "tileglu cannot be imported")
    if missing is not None:
        print(f"this was no GPU run: {missing}")
        return 3
    return code


def summary(rows):
    count = {}
    for one in rows:
        count.setdefault(one["suite"], dict.fromkeys(("passed", "failed", "skipped"), 0))[one["status"]] += 1
        if one["status"] != "passed":
            print(f"{one['status']}: {one['suite']} {one['test']}: {one['reason']}")
    for suite, found in count.items():
        print(f"{suite:17} " + ", ".join(f"{number} {status}" for status, number in found.items()))
    total = {status: sum(found[status] for found in count.values()) for status in ("passed", "failed", "skipped")}
    print(", ".join(f"{number} {status}" for status, number in total.items()))
    return 0 if total["passed"] and not total["failed"] else 1


if __name__ == "__main__":
    sys.exit(main())
