#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures Transformers models of random weights with and without tileglu.transformers.patch, end to end.

    TILEGLU_LIBRARY=build/bin/libtileglu.so.0 scripts/bench_transformers.py --output FILE [--budget SECONDS]

Prefill: one forward pass over whole prompts, no cache, logits of the last token. Decode: one token for each sequence on a
static cache. Contenders run by turns in one process and share their weights. Modes: eager; cuda_graph, the pass
captured once and replayed; compile, torch.compile(mode="reduce-overhead"). Logits: relative error against the same
weights in fp32. A case that fails is a row that says why, and the file is complete after each case.
"""

import argparse
import copy
import json
import os
import signal
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import torch  # noqa: E402
import transformers  # noqa: E402
from transformers_cases import MODELS, PATCHED, PLAIN, build, decode, ids_of, in_mode, interleaved, prefill  # noqa: E402

import tileglu  # noqa: E402

PREFILL, DECODE = (1, 4), (1, 16)  # batches
MODES = ("cuda_graph", "eager", "compile")
SECONDS = 2.5  # for the samples of a case


def quantile(values, q):
    return round(values[min(len(values) - 1, int(q * len(values)))] * 1e6, 2)


@torch.no_grad()
def timed(models, name, phase, batch, tokens, mode, limit):
    device = models[PLAIN].device
    make = {"prefill": prefill, "decode": decode}[phase]
    pairs = {contender: in_mode(mode, make, model, batch, tokens) for contender, model in models.items()}
    hidden, intermediate, *_ = MODELS[name]
    m = batch * tokens
    chosen = tileglu.plan(m, intermediate, hidden, memory="cuda" if device.type == "cuda" else "host")
    rows = []
    for contender, values in interleaved(pairs, device, limit).items():
        median = statistics.median(values)
        rows.append({
            "model": name, "phase": phase, "batch": batch, "tokens": tokens, "mode": mode, "m": m, "n": intermediate,
            "k": hidden, "dtype": "bf16", "contender": contender,
            "config": f"{chosen.backend} {chosen.kernel}" if contender == PATCHED else "",
            "median_us": round(median * 1e6, 2), "p5_us": quantile(values, 0.05), "p95_us": quantile(values, 0.95),
            "tokens_per_s": round(m / median), "samples": len(values), "status": "ok", "reason": "",
        })  # fmt: skip
    return rows


@torch.no_grad()
def logits(models, name, _phase, batch, tokens):
    """Rows of each contender's error against fp32; the references are computed one sequence at a time."""
    exact = copy.deepcopy(models[PLAIN]).float()
    torch.manual_seed(2)
    errors = {contender: [0.0, 0.0, 0] for contender in models}
    norm = 0.0
    for ids in ids_of(exact, batch, tokens).split(1):
        wanted = exact(ids, use_cache=False).logits
        norm += float(wanted.norm()) ** 2
        for contender, model in models.items():
            found, sums = model(ids, use_cache=False).logits.float(), errors[contender]
            sums[0] += float((found - wanted).norm()) ** 2
            sums[1] = max(sums[1], float((found - wanted).abs().max()))
            sums[2] += int((found.argmax(-1) == wanted.argmax(-1)).sum())
    return [
        {
            "model": name, "phase": "logits", "batch": batch, "tokens": tokens, "contender": contender,
            "relative_error": (squares / norm) ** 0.5, "largest_error": largest, "same_argmax": same / (batch * tokens),
            "status": "ok", "reason": "",
        }
        for contender, (squares, largest, same) in errors.items()
    ]  # fmt: skip


def fill(models, name, device):
    models.update(build(name, device))
    return []


# --- The run ----------------------------------------------------------------------------------------------------------


class Run:
    """The document, and the time left. A case gets the time left, then it is a failed row."""

    def __init__(self, output, budget, device):
        self.output, self.end = output, time.monotonic() + budget
        self.document = {
            "schema_version": 1, "command": "bench_transformers", "commit": tileglu.build_info(), "method": __doc__,
            "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu", "rows": [],
            "environment": {"torch": torch.__version__, "transformers": transformers.__version__,
                            "cuda": torch.version.cuda, "python": sys.version.split()[0]},
        }  # fmt: skip
        signal.signal(signal.SIGALRM, self._late)

    def _late(self, *_):
        raise TimeoutError("the time of --budget is over")

    def case(self, function, models, name, *arguments):
        """Adds function's rows, or one that says why there are none."""
        left = self.end - time.monotonic()
        try:
            if left <= 0:
                self._late()
            signal.setitimer(signal.ITIMER_REAL, left)
            found = function(models, name, *arguments)
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            labels = dict(zip(("phase", "batch", "tokens", "mode"), arguments if function is not fill else ("build",)))
            found = [{"model": name, **labels, "status": "failed", "reason": reason}]
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        self.document["rows"] += found
        self.write()

    def write(self):
        new = self.output + ".new"
        os.makedirs(os.path.dirname(os.path.abspath(self.output)), exist_ok=True)
        with open(new, "w") as file:
            json.dump(self.document, file, indent=1)
            file.write("\n")
        os.replace(new, self.output)


def table(rows):
    """One line a case: both medians and their ratio, or both errors, or why not."""
    lines, groups = [], {}
    for row in rows:
        key = tuple(str(row.get(field, "")) for field in ("model", "phase", "batch", "tokens", "mode"))
        groups.setdefault(key, {})[row.get("contender")] = row
    for key, found in groups.items():
        head = "{:13} {:8} {:>3}x{:<5} {:11}".format(*key)
        if PLAIN not in found:
            lines += [f"{head} {row['status']}: {row['reason']}" for row in found.values()]
            continue
        field = "relative_error" if key[1] == "logits" else "median_us"
        plain, patched = found[PLAIN][field], found[PATCHED][field]
        lines.append(f"{head} {plain:>12.6g} {patched:>12.6g}  {plain / patched:.3f}x")
    return [f"{'':44}{'unpatched':>12} {'patched':>12}  (us; logits: error against fp32)", *lines]


def all_cases(run, names, tokens, device, modes):
    plain = [mode for mode in MODES if mode in modes and (mode == "eager" or mode == "cuda_graph" and device.type == "cuda")]
    for name in names if plain else ():
        models = {}
        run.case(fill, models, name, device)
        if not models:
            continue
        run.case(logits, models, name, "logits", 4, tokens // 4)
        for mode in plain:
            for batch in PREFILL:
                run.case(timed, models, name, "prefill", batch, tokens, mode, SECONDS)
        for mode in plain[:1]:
            for batch in DECODE:
                run.case(timed, models, name, "decode", batch, 1, mode, SECONDS / 2)
        models.clear()
    if "compile" not in modes:
        return
    models = {}  # last, since compiling takes longest
    run.case(fill, models, names[0], device)
    for batch in DECODE if models else ():
        torch._dynamo.reset()
        run.case(timed, models, names[0], "decode", batch, 1, "compile", SECONDS / 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", required=True)
    parser.add_argument("--budget", type=float, default=150, help="seconds in all (%(default)s)")
    parser.add_argument("--models", default="qwen2.5-0.5b,qwen2.5-1.5b,qwen2.5-7b", help="%(default)s")
    parser.add_argument("--tokens", type=int, default=2048, help="tokens of a prompt (%(default)s)")
    parser.add_argument("--modes", default=",".join(MODES), help="%(default)s")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    options = parser.parse_args()
    modes = options.modes.split(",")
    if not set(modes) <= set(MODES):
        parser.error(f"--modes={options.modes}: must be some of {', '.join(MODES)}")
    device = torch.device(options.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        parser.exit(3, "--device=cuda: torch finds no CUDA device here\n")
    run = Run(options.output, options.budget, device)
    all_cases(run, options.models.split(","), options.tokens, device, modes)
    print("\n".join(table(run.document["rows"])))
    return 0 if all(row["status"] == "ok" for row in run.document["rows"]) else 1


if __name__ == "__main__":
    sys.exit(main())
