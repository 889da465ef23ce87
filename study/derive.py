# SPDX-License-Identifier: Apache-2.0
"""Files made from the raw ones after a run: the rows of the grid as one bench file, and the roofline that the tool
makes of it (the formulas are the tool's: `tileglu roofline`)."""

import json
import subprocess

from .store import SCHEMA_VERSION, read_json, write_json

GRID, ROOFLINE = "data/speedup.json", "data/roofline.json"
FUSED = "tileglu", "interleave_by_1"  # whose fusion efficiency the page shows: ours, and the paper's
METHOD = "study: contenders interleaved, cold cache by rotating sets of operands; see report.md and the raw files"


def all_files(store):
    rows = store.rows("speedup")
    machine = store.documents("machine")
    if not rows or not machine:
        return
    bench = machine[0][1]["bench"]
    write_json(
        store.folder / GRID,
        {
            "schema_version": SCHEMA_VERSION,
            "command": "bench",
            "device": bench["device"],
            "commit": bench["commit"],
            "method": METHOD,
            "peak": bench["peak"],
            "ceilings": bench["ceilings"],
            "rows": [{name: value for name, value in row.items() if name != "samples_us"} for row in rows],
        },
    )
    write_json(store.folder / ROOFLINE, roofline(store.folder / GRID))


def roofline(grid):
    from tileglu import _tool

    done = subprocess.run(
        [_tool.path(), "roofline", "--bench", str(grid), "--json"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"tileglu roofline ended with code {done.returncode}: {done.stderr.strip()}")
    document = json.loads(done.stdout)
    document["fusion"] = [row for row in document["fusion"] if row["contender"] in FUSED]
    return document


def read(store, name):
    """A derived file, or None if the run did not get that far."""
    path = store.folder / name
    return read_json(path) if path.exists() else None
