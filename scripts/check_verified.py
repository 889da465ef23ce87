#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether a record that ./dev gpu-test wrote is about the sources as they are now, and whether all was right.

A failed test is accepted only if known_failures.json beside the record, made for the same sources, says why the kernels
are right all the same: {"sources_hash": ..., "tests": {NAME: REASON}}. It is printed.
"""

import json
import subprocess
import sys
from pathlib import Path


def complaint(record, present):
    if not record.exists():
        return "does not exist; run ./dev gpu-test on a Hopper GPU and commit its record"
    try:
        document = json.loads(record.read_text())
        recorded, verified = document["sources_hash"], document["verified"]
    except (ValueError, KeyError, TypeError) as error:
        return f"is not a record of ./dev gpu-test: {error!r}"
    if recorded != present:
        return f"was made from other sources ({recorded[:12]}, now {present[:12]}); run ./dev gpu-test again"
    if verified is True:
        return None
    known = record.with_name("known_failures.json")
    known = json.loads(known.read_text()) if known.exists() else {}
    reasons = known.get("tests", {}) if known.get("sources_hash") == recorded else {}
    failed = document.get("failed")
    if document.get("reason") != "tests failed" or not failed or any(test not in reasons for test in failed):
        return "says that a kernel configuration failed its check"
    for test in failed:
        print(f"check_verified: {test} failed: {reasons[test]}", file=sys.stderr)
    return None


def main():
    record, *present = sys.argv[1:]
    if not present:
        script = Path(__file__).with_name("sources_hash.sh")
        present = [subprocess.run(["bash", script], capture_output=True, text=True, check=True).stdout.strip()]
    problem = complaint(Path(record), present[0])
    if problem:
        print(f"check_verified: {record} {problem}", file=sys.stderr)
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
