#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the results that ./dev test left in a folder and prints them, ending in 'N passed, N failed, N skipped'.

SUITE.xml    JUnit file of one ctest run; a test that could not be started counts as failed.
steps.tsv    lines 'passed|failed|skipped<TAB>suite<TAB>name<TAB>detail' of what ctest does not run.
Exit code 1 if anything failed or nothing passed.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import namedtuple
from pathlib import Path

Case = namedtuple("Case", "outcome suite name detail")


def junit_cases(suite, element):
    """The case, after what pytest skipped inside it. One in which all was skipped did not pass."""
    skipped = pytest_skips(suite, element) if element.get("status") == "run" else []
    if skipped and not re.search(r"\b\d+ passed\b", element.findtext("system-out")):
        return skipped
    return [*skipped, junit_case(suite, element)]


def pytest_skips(suite, element):
    """Of the lines 'SKIPPED [count] file:line: reason' in the output of a test that runs pytest."""
    found = re.findall(r"^SKIPPED \[(\d+)\] (\S+): (.*)$", element.findtext("system-out") or "", re.MULTILINE)
    return [
        Case("skipped", suite, f"{element.get('name')}/{Path(place.partition(':')[0]).stem}", reason.strip())
        for count, place, reason in found
        for _ in range(int(count))
    ]


def junit_case(suite, element):
    name, status = element.get("name"), element.get("status")
    skipped = element.find("skipped")
    if status == "run":
        return Case("passed", suite, name, "")
    if status == "disabled":
        return Case("skipped", suite, name, "disabled")
    if status == "notrun" and skipped is not None and skipped.get("message", "").startswith("SKIP_"):
        return Case("skipped", suite, name, skip_reason(element.findtext("system-out") or ""))
    return Case("failed", suite, name, skipped.get("message", "") if skipped is not None else "")


def skip_reason(output):
    """The text given to GTEST_SKIP, which GoogleTest prints on the line after 'file:line: Skipped', or to pytest, which
    prints 'SKIPPED [1] file:line: text'."""
    lines = output.splitlines()
    for line in lines:
        if line.startswith("SKIPPED ["):
            return line.split(": ", 1)[-1].strip()
    for line, following in zip(lines, lines[1:]):
        if line.endswith(": Skipped"):
            return following.strip()
    return ""


def read_suite(path):
    try:
        elements = ElementTree.parse(path).iter("testcase")
        cases = [case for element in elements for case in junit_cases(path.stem, element)]
    except ElementTree.ParseError as error:
        return [Case("failed", path.stem, path.name, f"cannot be read: {error}")]
    return cases or [Case("failed", path.stem, path.name, "holds no test")]


def read_steps(path):
    return [Case(*line.split("\t")) for line in path.read_text().splitlines()] if path.exists() else []


def by_test(names):
    """The names, with the instances of a parameterised test ('Suite.Test/parameter') as one: 'Suite.Test/* (19)'."""
    tests = {}
    for name in names:
        suite, dot, rest = name.split("  # ")[0].rpartition(".")
        test, slash, _ = rest.partition("/")
        tests.setdefault(suite + dot + test + slash, []).append(name)
    return [f"{test}* ({len(found)})" if len(found) > 1 else found[0] for test, found in tests.items()]


def print_skipped(cases):
    for suite in dict.fromkeys(case.suite for case in cases):
        reasons = {}
        for case in cases:
            if case.suite == suite:
                reasons.setdefault(case.detail, []).append(case.name)
        for reason, names in reasons.items():
            print(f"not run in {suite}" + (f" ({reason})" if reason else "") + ": " + " ".join(by_test(names)))


def main():
    folder = Path(sys.argv[1])
    cases = [case for path in sorted(folder.glob("*.xml")) for case in read_suite(path)]
    cases += read_steps(folder / "steps.tsv")
    by_outcome = {outcome: [c for c in cases if c.outcome == outcome] for outcome in ("passed", "failed", "skipped")}
    if len(cases) != sum(map(len, by_outcome.values())):
        raise SystemExit("test_summary: steps.tsv holds an unknown outcome")
    print_skipped(by_outcome["skipped"])
    for case in by_outcome["failed"]:
        print(f"FAILED in {case.suite}: {case.name}" + (f" ({case.detail})" if case.detail else ""))
    print(", ".join(f"{len(found)} {outcome}" for outcome, found in by_outcome.items()))
    return 1 if by_outcome["failed"] or not by_outcome["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
