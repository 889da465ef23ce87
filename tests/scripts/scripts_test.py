# SPDX-License-Identifier: Apache-2.0
"""The scripts that decide what ./dev and the README say, each with a planted fault."""

import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts"


def python(script, *arguments):
    return subprocess.run([sys.executable, SCRIPTS / script, *arguments], capture_output=True, text=True, check=False)


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tileglu scripts ")  # a space, as users have
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


class MergeVerified(Folder):
    PART = {
        "schema_version": 1, "gpu": "G", "driver": "D", "sources_hash": "h", "build_info": "b", "date": "d",
        "kernels": ["a", "b"], "tests_enabled": 4, "tests_passed": 2, "tests_failed": 0, "failed": [], "verified": True,
    }  # fmt: skip
    ONE = {"cases": 3, "worst_relative_frobenius": 0.1, "worst_ratio_to_eager": 0.5}
    TWO = {"cases": 1, "worst_relative_frobenius": 0.3, "worst_ratio_to_eager": 0.4}

    def merge(self, *changes):
        configs = ({"a": self.ONE}, {"a": self.TWO, "b": self.ONE})
        parts = [
            str(self.write(f"{i}.json", json.dumps(self.PART | {"configs": configs[i]} | change)))
            for i, change in enumerate(changes)
        ]
        code = python("merge_verified.py", str(self.folder / "merged.json"), *parts).returncode
        return code, json.loads((self.folder / "merged.json").read_text())

    def test_sums_and_worst(self):
        code, merged = self.merge({}, {})
        self.assertEqual((code, merged["verified"], merged["tests_passed"]), (0, True, 4))
        worst = {"cases": 4, "worst_relative_frobenius": 0.3, "worst_ratio_to_eager": 0.5}
        self.assertEqual(merged["configs"]["a"], worst)

    def test_what_is_missing_is_not_verified(self):
        for change, reason in (
            ({"tests_passed": 1}, "tests were left out"),
            ({"tests_passed": 1, "tests_failed": 1, "failed": ["x"], "verified": False, "reason": "tests failed"}, "tests failed"),
            ({"configs": {"a": self.ONE}}, "b was not checked"),
            ({"sources_hash": "other"}, "sources_hash differs between parts"),
        ):
            code, merged = self.merge({}, change)
            self.assertEqual((code, merged["verified"], merged["reason"]), (1, False, reason))


class BenchTable(Folder):
    CLAIMS = "benchmarks/h200/study/data/claims.json"

    @staticmethod
    def marked(*markers):
        blocks = (f"<!-- {marker} -->old<!-- end of table -->" for marker in markers)
        return "\n".join(["before", *blocks, "after\n"])

    def setUp(self):
        super().setUp()
        sources = [f"from benchmarks/h200/{name}.json" for name in ("prefill", "decode")]
        matrices = *(f"matrix {source}" for source in sources), f"winners {sources[0]}"
        readme = self.marked(*matrices, f"claims from {self.CLAIMS}")
        self.readme = self.write("README.md", readme)
        self.long = self.write("docs/measurements.md", self.marked(*(f"table {source}" for source in sources)))

    def measured(self, *rows, name="prefill"):
        shape = {"model": "m1", "m": 512, "n": 64, "k": 32, "tflops": 500.0, "config": "", "status": "ok"}
        document = {"device": "GPU", "commit": "abc", "ceilings": {"read_gbps": 4490.7}}
        self.write(f"benchmarks/h200/{name}.json", json.dumps(document | {"rows": [shape | row for row in rows]}))

    def run_script(self, *arguments):
        return python("bench_table.py", "--root", str(self.folder), *arguments)

    def written(self, page):
        self.assertEqual(self.run_script().returncode, 0)
        text = page.read_text()
        self.assertTrue(text.startswith("before\n") and text.endswith("\nafter\n"))
        self.assertEqual(self.run_script("--check").returncode, 0)
        return text

    def test_takes_the_fastest_good_configuration(self):
        self.measured(
            {"contender": "interleave", "config": "a", "median_us": 20.0},
            {"contender": "interleave_128x128_g1", "config": "b", "median_us": 10.0},
            {"contender": "interleave", "config": "c", "median_us": 1.0, "status": "error", "tflops": None},
            {"contender": "cublas_merged", "median_us": 15.0},
            {"contender": "cublas_gemm_only", "median_us": 9.0},
        )
        row = "| m1 | 512 | 64 | 32 | – | 10.0 | – | 15.0 | – | 9.0 | – | – | – | `b` |"
        self.assertIn(row, self.written(self.long))

    def test_decode_has_ratios_and_shares(self):
        self.measured(
            {"contender": "tileglu", "config": "a", "median_us": 10.0, "share_of_read_ceiling": 0.8},
            {"contender": "cublas_merged", "median_us": 15.0},
            name="decode",
        )
        row = "| m1 | 512 | 64 | 32 | 10.0 | – | 15.0 | – | – | 80% | – | 1.50x | – | – | – | – | – |"
        self.assertIn(row, self.written(self.long))

    def times(self, ours, merged, **shape):
        return [{"contender": name, "median_us": us, "share_of_read_ceiling": 0.8} | shape
                for name, us in (("tileglu", ours), ("cublas_merged", merged))]

    def test_a_matrix_has_a_column_for_each_m_in_ascending_order(self):
        self.measured(
            *self.times(10.0, 20.0, m=2048),
            {"contender": "cublas_gemm_only", "median_us": 9.0, "m": 2048},
            *self.times(1.0, 3.0, m=512),
            *self.times(5.0, 40.0, m=2048, model="m2", n=128),
        )
        text = self.written(self.readme)
        for line in (
            "| µs<br>over merged<br>over GEMM only | M = 512 | 2048 |",
            "| m1 | 1.0<br>3.00x<br>– | 10.0<br>2.00x<br>0.90x |",
            "| m2 | – | 5.0<br>8.00x<br>– |",
            "| geometric mean | 3.00x<br>– | 4.00x<br>0.90x |",
            "Geometric mean of all shapes: 3.63x over merged, 0.90x over GEMM only.",
        ):
            self.assertIn(line + "\n", text)
        self.assertIn("nothing repacked", text)
        self.assertIn("GPU, commit abc.", text)

    def test_which_kernel_wins_from_512_tokens_on(self):
        self.measured(
            {"contender": "tileglu", "config": "paired_128x192_pingpong_c2x1", "median_us": 9.0},
            {"contender": "interleave_128x192_pingpong_c2x1_g8", "config": "i", "median_us": 10.0},
            {"contender": "sync_pingpong_128x128_pingpong_c2x1", "config": "s", "median_us": 12.0},
            {"contender": "cublas_gemm_only", "median_us": 8.0},
            {"contender": "interleave", "config": "interleave_128x256_cooperative_c2x1_g1", "median_us": 1.0, "m": 1024},
            {"contender": "tileglu", "config": "decode_8x16x512_mma", "median_us": 1.0, "m": 256},
        )
        for line in (
            "| fastest<br>Kernel-2 over Kernel-1 | M = 512 | 1024 |",
            "| m1 | paired 128x192<br>1.20x | interleave 128x256<br>– |",
        ):
            self.assertIn(line + "\n", self.written(self.readme))

    def test_the_matrix_of_decode_has_the_share_of_the_bandwidth(self):
        self.measured(*self.times(10.0, 15.0, m=1), name="decode")
        text = self.written(self.readme)
        self.assertIn("| µs<br>over merged<br>bandwidth | M = 1 |\n|---|---:|\n| m1 | 10.0<br>1.50x<br>80% |\n", text)
        self.assertIn("(4491 GB/s)", text)

    def claims(self, unfinished):
        rows = [{"claim": "wins", "paper": "7 of 20", "ours": "2 of 4", "why": "w", "source": "data/speedup.json"},
                {"claim": "share", "paper": "9–37 %", "ours": None, "why": "", "source": None}]
        document = {"schema_version": 1, "device": "GPU", "commit": "abc", "unfinished": unfinished, "rows": rows}
        self.write(self.CLAIMS, json.dumps(document))

    def test_the_papers_claims_beside_ours(self):
        self.claims({})
        text = self.written(self.readme)
        self.assertIn("| claim | paper | ours |\n|---|---|---|\n| wins | 7 of 20 | 2 of 4 |\n", text)
        self.assertIn("| share | 9–37 % | not measured |\n", text)
        self.assertIn("GPU, commit abc. [Its page](benchmarks/h200/study/report.md)", text)
        self.assertNotIn("Unfinished", text)

    def test_claims_of_an_unfinished_study_say_so(self):
        self.claims({"speedup": 3, "share": 2})
        self.assertIn("**Unfinished units of the study:** speedup 3, share 2.", self.written(self.readme))

    def test_check_notices_other_numbers_and_writes_nothing(self):
        self.measured({"contender": "tileglu", "median_us": 10.0})
        self.run_script()
        self.measured({"contender": "tileglu", "median_us": 11.0})
        pages = self.readme, self.long
        before = [page.read_text() for page in pages]
        done = self.run_script("--check")
        self.assertEqual(done.returncode, 1)
        self.assertIn("README.md, docs/measurements.md", done.stderr)
        self.assertEqual([page.read_text() for page in pages], before)

    def test_check_notices_other_claims(self):
        self.claims({})
        self.run_script()
        self.claims({"share": 1})
        self.assertEqual(self.run_script("--check").returncode, 1)

    def test_without_measurements_the_pages_say_so(self):
        self.assertEqual(self.run_script("--check").returncode, 1)
        self.assertEqual(self.written(self.readme).count("Not measured yet: there is no `"), 4)
        self.assertIn(f"`{self.CLAIMS}`", self.readme.read_text())

    def test_lost_marker_is_an_error(self):
        for text in ("no table here\n", self.readme.read_text().replace("<!-- claims", "<!-- clams")):
            self.readme.write_text(text)
            done = self.run_script()
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("README.md lacks the marker", done.stderr)


class TuningTable(Folder):
    def measured(self, name, *rows):
        shape = {"m": 512, "n": 64, "k": 32, "dtype": "bf16", "activation": "silu", "backend": "sm90",
                 "layout": "separate", "status": "ok"}
        document = {"version": "0.1.0", "commit": "abc", "rows": [shape | row for row in rows],
                    "environment": {"device": {"name": "NVIDIA H200", "sm_count": 132}}}
        return self.write(name, json.dumps(document))

    def table(self, *files):
        out = self.folder / "table.json"
        done = python("tuning_table.py", *map(str, files), "--output", str(out))
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(out.read_text())

    def winner(self, *rows):
        (row,) = self.table(self.measured("b.json", *rows))["rows"]
        return row["kernel"], row["median_us"]

    def test_the_fastest_good_kernel_of_each_shape(self):
        rows = (
            {"contender": "tileglu", "config": "a", "median_us": 20.0},
            {"contender": "b", "config": "b", "median_us": 10.0},
            {"contender": "c", "config": "c", "median_us": 1.0, "status": "wrong"},
            {"contender": "cublas_merged", "config": "merged", "backend": "cublas", "median_us": 2.0},
        )
        self.assertEqual(self.winner(*rows), ("b", 10.0))
        (row,) = self.table(self.measured("b.json", *rows))["rows"]
        self.assertEqual(set(row), {"device", "sm_count", "version", "dtype", "activation", "layout", "n", "k", "m",
                                    "kernel", "median_us"})

    def test_ties_go_to_the_planner(self):
        planned = {"contender": "tileglu", "config": "a", "median_us": 100.4}
        self.assertEqual(self.winner(planned, {"contender": "b", "config": "b", "median_us": 100.0}), ("a", 100.4))
        self.assertEqual(self.winner(planned, {"contender": "b", "config": "b", "median_us": 99.0}), ("b", 99.0))

    def test_a_kernel_under_two_names_has_their_mean(self):
        rows = ({"contender": "tileglu", "config": "a", "median_us": 10.0},
                {"contender": "a", "config": "a", "median_us": 20.0},
                {"contender": "b", "config": "b", "median_us": 14.0})
        self.assertEqual(self.winner(*rows), ("b", 14.0))

    def test_layouts_without_the_planners_choice_are_left_out(self):
        rows = ({"contender": "tileglu", "config": "a", "median_us": 10.0},
                {"contender": "g8", "config": "g8", "median_us": 1.0, "layout": "interleaved_8"})
        self.assertEqual(self.winner(*rows), ("a", 10.0))

    def test_later_files_replace_rows_and_shapes_are_sorted(self):
        first = self.measured("1.json", *({"contender": "tileglu", "config": "a", "median_us": 9.0, "m": m}
                                          for m in (1024, 512)))
        second = self.measured("2.json", {"contender": "tileglu", "config": "b", "median_us": 11.0})
        rows = self.table(first, second)["rows"]
        self.assertEqual([(row["m"], row["kernel"]) for row in rows], [(512, "b"), (1024, "a")])

    def test_no_rows_is_a_table_too(self):
        self.assertEqual(self.table(self.measured("b.json"))["rows"], [])

    def test_other_files_are_refused(self):
        done = python("tuning_table.py", str(self.write("x.json", "{}")), "--output", str(self.folder / "t.json"))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("x.json", done.stderr)
        self.assertFalse((self.folder / "t.json").exists())


class TestSummary(Folder):
    def summary(self):
        done = python("test_summary.py", str(self.folder))
        return done.returncode, done.stdout.splitlines()

    def suite(self, name, *cases):
        self.write(f"{name}.xml", "<testsuite>" + "".join(cases) + "</testsuite>")

    PASSED = '<testcase name="a" status="run"/>'
    SKIPPED = (
        '<testcase name="s" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>'
        "<system-out>x.cpp:3: Skipped\nno GPU here</system-out></testcase>"
    )
    FAILED = '<testcase name="f" status="fail"><failure message=""/></testcase>'
    NOT_BUILT = '<testcase name="n" status="notrun"><skipped message="Unable to find executable"/></testcase>'

    def test_counts_over_suites_and_steps(self):
        self.suite("one", self.PASSED, self.SKIPPED)
        self.suite("two", self.PASSED)
        self.write("steps.tsv", "passed\tlint\tformat\t\nskipped\tgpu\tG.x\tneeds a GPU\n")
        code, lines = self.summary()
        self.assertEqual((code, lines[-1]), (0, "3 passed, 0 failed, 2 skipped"))
        self.assertIn("not run in one (no GPU here): s", lines)
        self.assertIn("not run in gpu (needs a GPU): G.x", lines)

    def test_the_reason_that_pytest_gives(self):
        text = "1 skipped\nSKIPPED [1] tests/python/torch_test.py:12: torch is not installed\n"
        self.suite("one", self.PASSED, self.SKIPPED.replace("x.cpp:3: Skipped\nno GPU here", text))
        self.assertIn("not run in one (torch is not installed): s", self.summary()[1])

    def test_what_pytest_skips_inside_an_entry_counts(self):
        case = '<testcase name="python.x" status="run"><system-out>{}</system-out></testcase>'
        skips = "SKIPPED [2] x_test.py:3: needs a Hopper GPU\nSKIPPED [1] x_test.py: needs a Hopper GPU\n"
        self.suite("one", case.format(skips + "7 passed, 3 skipped in 1.2s"))
        code, lines = self.summary()
        self.assertEqual((code, lines[-1]), (0, "1 passed, 0 failed, 3 skipped"))
        self.assertIn("not run in one (needs a Hopper GPU): python.x/* (3)", lines)
        self.suite("one", self.PASSED, case.format(skips + "3 skipped in 1.2s"))
        self.assertEqual(self.summary()[1][-1], "1 passed, 0 failed, 3 skipped")

    def test_instances_of_a_parameterised_test_are_one_word_but_count(self):
        self.suite("one", self.PASSED)
        self.write("steps.tsv", "".join(f"skipped\tgpu\t{name}\tno GPU\n" for name in ("All/G.x/a", "All/G.x/b", "G.y")))
        code, lines = self.summary()
        self.assertEqual((code, lines[-1]), (0, "1 passed, 0 failed, 3 skipped"))
        self.assertIn("not run in gpu (no GPU): All/G.x/* (2) G.y", lines)

    def test_failed_and_not_built_count_as_failed(self):
        self.suite("one", self.PASSED, self.FAILED, self.NOT_BUILT)
        code, lines = self.summary()
        self.assertEqual((code, lines[-1]), (1, "1 passed, 2 failed, 0 skipped"))

    def test_failed_step_fails(self):
        self.suite("one", self.PASSED)
        self.write("steps.tsv", "failed\trelease\tbuild\t\n")
        self.assertEqual(self.summary()[0], 1)

    def test_nothing_run_unreadable_or_empty_fails(self):
        self.assertEqual(self.summary()[0], 1)
        self.write("one.xml", "<testsuite><testcase")
        self.assertEqual(self.summary()[1][-1], "0 passed, 1 failed, 0 skipped")
        self.suite("one")
        self.assertEqual(self.summary()[1][-1], "0 passed, 1 failed, 0 skipped")


class CheckVerified(Folder):
    def check(self, text, present="abc"):
        return python("check_verified.py", str(self.write("verified.json", text)), present).returncode

    def test_only_a_good_record_of_these_sources_passes(self):
        self.assertEqual(self.check('{"sources_hash": "abc", "verified": true}'), 0)
        for text in (
            '{"sources_hash": "abd", "verified": true}',
            '{"sources_hash": "abc", "verified": false}',
            '{"sources_hash": "abc", "verified": "true"}',
            '{"sources_hash": "abc"}',
            '{"sources_hash": "abc", "ver',
            "[]",
        ):
            self.assertEqual(self.check(text), 1, text)
        self.assertEqual(python("check_verified.py", str(self.folder / "none.json"), "abc").returncode, 1)

    def test_a_failure_passes_only_with_a_reason_for_the_same_sources(self):
        record = '{"sources_hash": "abc", "verified": false, "reason": "tests failed", "failed": ["T", "U"]}'
        for known, code in (
            ('{"sources_hash": "abc", "tests": {"T": "why", "U": "why"}}', 0),
            ('{"sources_hash": "abc", "tests": {"T": "why"}}', 1),
            ('{"sources_hash": "abd", "tests": {"T": "why", "U": "why"}}', 1),
        ):
            self.write("known_failures.json", known)
            self.assertEqual(self.check(record), code, known)
        self.write("known_failures.json", '{"sources_hash": "abc", "tests": {"T": "why", "U": "why"}}')
        self.assertEqual(self.check(record.replace("tests failed", "tests were left out")), 1)


class SourcesHash(Folder):
    def setUp(self):
        super().setUp()
        self.tree = self.folder / "tree"
        listed = self.script(ROOT, "--list").split()
        for name in [*listed, "scripts/sources_hash.sh"]:
            (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.tree / name)

    @staticmethod
    def script(tree, *arguments):
        command = ["bash", tree / "scripts/sources_hash.sh", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def test_same_tree_elsewhere_has_the_same_hash(self):
        self.assertEqual(self.script(self.tree), self.script(ROOT))

    def test_changes_with_content_and_name_only(self):
        before = self.script(self.tree)
        kernel = self.tree / "src/backends/sm90/interleave.cuh"
        (self.tree / "src/plan/planner.cpp").write_text("// not a kernel\n")
        self.assertEqual(self.script(self.tree), before)
        with kernel.open("a") as file:
            file.write(" ")
        changed = self.script(self.tree)
        self.assertNotEqual(changed, before)
        kernel.rename(kernel.with_name("renamed.cuh"))
        self.assertNotIn(self.script(self.tree), (before, changed))


if __name__ == "__main__":
    unittest.main()
