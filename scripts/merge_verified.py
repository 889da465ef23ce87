#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Joins the records of processes that ran a part of the GPU tests each (./dev gpu-test).

    scripts/merge_verified.py TARGET PART...

Verified is what no part disputes and what is complete: every enabled test ran in one of the parts, and every kernel was
checked. Exit code 1 if it is not.
"""

import json
import pathlib
import sys

SAME = ["schema_version", "gpu", "driver", "sources_hash", "build_info", "date", "kernels", "tests_enabled"]


def merge(parts):
    first = parts[0]
    merged = {key: first[key] for key in SAME}
    reasons = [f"{key} differs between parts" for key in SAME if any(part[key] != first[key] for part in parts)]
    reasons += [part["reason"] for part in parts if not part["verified"]]
    merged["tests_passed"] = sum(part["tests_passed"] for part in parts)
    merged["tests_failed"] = sum(part["tests_failed"] for part in parts)
    merged["failed"] = [name for part in parts for name in part["failed"]]
    configs = {}
    for part in parts:
        for kernel, found in part["configs"].items():
            known = configs.setdefault(kernel, dict.fromkeys(found, 0))
            known["cases"] += found["cases"]
            for worst in ("worst_relative_frobenius", "worst_ratio_to_eager"):
                known[worst] = max(known[worst], found[worst])
    merged["configs"] = dict(sorted(configs.items()))
    if merged["tests_passed"] + merged["tests_failed"] != merged["tests_enabled"]:
        reasons.append("tests were left out")
    reasons += [f"{kernel} was not checked" for kernel in merged["kernels"] if kernel not in configs]
    del merged["kernels"]
    merged["verified"] = not reasons
    if reasons:
        merged["reason"] = "; ".join(dict.fromkeys(reasons))
    return merged


def main(target, *paths):
    merged = merge([json.loads(pathlib.Path(path).read_text(encoding="utf-8")) for path in paths])
    pathlib.Path(target).write_text(json.dumps(merged, indent=2) + "\n", encoding="utf-8")
    for name in merged["failed"]:
        print(f"failed: {name}")
    print(f"wrote {target} (verified: {str(merged['verified']).lower()}{', ' + merged['reason'] if 'reason' in merged else ''})")
    print(f"{merged['tests_passed']} passed, {merged['tests_failed']} failed, 0 skipped")
    return 0 if merged["verified"] else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
