# SPDX-License-Identifier: Apache-2.0
"""What was measured on what, and how; and what could not be measured."""

from .page import Section, Table, raw

HOW = (
    "Contenders of a shape take turns in random order after a common warm-up; a sample is the time between two CUDA "
    "events around as many calls as fill {sample_us:.0f} µs, divided by their number. Calls rotate over sets of "
    "operands that together exceed three times the last-level cache, so weights come from device memory. `graph`: the "
    "calls of a sample are one CUDA graph; `stream`: the host issues them one by one; calls of more than 1.5 ms are "
    "only timed so. {samples} samples a contender; median, 5th and 95th percentile; every sample is in the raw file "
    "that the row links to.",
    "Data are random normal with full mantissas (weights divided by √K). Outputs are poisoned with NaN and 16 rows of "
    "each result are checked against fp64 before anything is timed; a wrong contender gets no time. FLOP = 4·M·N·K; "
    "bytes = A, both weights and Y once.",
)
NO_GPU = (
    "**This page was made without a GPU** ({reason}): the CPU backend on small shapes, to exercise the whole path. "
    "Its times say nothing about the paper's claims, which are all marked as not measured."
)


def summary(data):
    parts = []
    if not data.on_gpu:
        parts.append(NO_GPU.format(reason=data.about["why_not_gpu"] or "host operands were asked for"))
    parts.append(
        "The paper: *Tile-Level Activation Overlap for Efficient LLM Inference*, arXiv 2607.02521 (July 2026), "
        f"measured on an H100. Here: {data.bench.get('device', 'unknown device')}, tileglu "
        f"{data.bench.get('version', '?')} of commit {data.bench.get('commit', '?')}, preset "
        f"`{data.about['preset']}`, {data.about['dtype']}."
    )
    if data.unfinished:
        counts = ", ".join(f"{name} {len(keys)}" for name, keys in data.unfinished.items())
        parts.append(f"**Unfinished units:** {counts}. `python3 -m study run` into the same folder goes on with them.")
    return parts


def method(data):
    parts = [text.format(**data.about) for text in HOW]
    parts.append(f"Command: `{data.about['command']}`, then `tileglu report`.")
    if data.machine:
        parts.append(Table(["what", "value"], facts(data), 2))
    parts.append(sensors(data))
    return Section("Method and machine", [part for part in parts if part])


def facts(data):
    machine, environment = data.machine, data.bench["environment"]
    device = environment["device"]
    rows = [[name.replace("_", " "), str(device[name])] for name in device if device[name] is not None]
    rows += [
        [name, str(environment[name])]
        for name in ("compiler", "cuda", "cutlass", "driver", "processor")
        if environment.get(name)
    ]
    rows += [["python", machine["python"]], ["system", machine["system"]]]
    rows += [[name, version] for name, version in machine["packages"].items() if version]
    for name, unit in (
        ("gemm_tflops", "TFLOP/s, bf16 8192³ GEMM"),
        ("read_gbps", "GB/s, reading"),
        ("copy_gbps", "GB/s, copying"),
    ):
        if data.ceilings.get(name):
            rows.append([f"ceiling {unit}", f"{data.ceilings[name]:.0f}"])
    return rows


def sensors(data):
    """Clock and power at the end of each experiment's units: lowest and highest."""
    rows = []
    for experiment in ("speedup", "share", "end_to_end", "energy", "compile"):
        readings = [d["sensors_at_end"] for _, d in data.store.documents(experiment) if d.get("sensors_at_end")]
        if readings:
            cells = [experiment, str(len(readings))]
            for field in ("sm_clock_mhz", "power_watts"):
                values = [r[field] for r in readings if r[field] is not None]
                cells.append(f"{min(values):.0f} … {max(values):.0f}" if values else None)
            rows.append(cells)
    return Table(["experiment", "units", "SM clock, MHz", "power, W"], rows) if rows else None


def failures(data):
    """Rows without a figure, each reason once."""
    reasons = {}
    for experiment in ("speedup", "share", "numerics", "end_to_end", "energy", "compile"):
        for row in data.rows(experiment):
            if row["status"] == "ok":
                continue
            key = experiment, row["contender"], row["status"], row["reason"]
            reasons.setdefault(key, []).append(row)
    rows = [[*key[:3], key[3], str(len(found)), raw(found[0])] for key, found in reasons.items()]
    if not rows:
        return Section("What has no figure", ["Every contender of every unit was measured."])
    text = "Contenders that were not found, do not apply, or failed; the first raw file of each."
    return Section(
        "What has no figure", [text, Table(["experiment", "contender", "status", "reason", "rows", ""], rows, 4)]
    )


def files(data):
    counts = [
        [name, str(len(data.store.documents(name)))]
        for name in ("machine", "speedup", "share", "numerics", "end_to_end", "energy", "compile")
    ]
    text = (
        "Raw files of this study, under `raw/<experiment>/`; the files in `data/` hold what the figures show, each "
        "with the raw files that it is made from, and the table of claims (`data/claims.json`)."
    )
    return Section("Files", [text, Table(["experiment", "raw files"], counts)])
