# SPDX-License-Identifier: Apache-2.0
"""tune: refusals that leave no file behind anywhere, and on a GPU the way of a result into the next process's plan."""
import json
import os
import pathlib
import signal
import subprocess
import unittest

import tool

SHAPE = ("--n", "512", "--k", "256")


class TuneTest(tool.ToolTest):
    def setUp(self):
        super().setUp()
        self.cache = self.folder / "cache"
        self.environment = {**os.environ, "TILEGLU_CACHE_DIR": str(self.cache)}

    def tune(self, *arguments, code=0):
        result = tool.run("tune", *SHAPE, *arguments, "--json", env=self.environment)
        self.assertEqual(result.returncode, code, f"{result.stdout}\n{result.stderr}")
        return json.loads(result.stdout)


class TuningCache(TuneTest):
    """What info says of it, on any machine."""

    ROW = {"device": "NVIDIA H200", "sm_count": 132, "version": "0.1.0", "dtype": "bf16", "activation": "silu",
           "layout": "separate", "n": 512, "k": 256, "m": 64, "kernel": "k", "median_us": 1.5}

    def info(self):
        result = tool.run("info", "--json", env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)["tuning"], result.stderr

    def test_is_read_or_absent_in_silence(self):
        path = self.cache / "tuning.json"
        tuning, errors = self.info()
        self.assertEqual((tuning["file"], tuning["rows"], errors), (str(path), 0, ""))
        self.assertFalse(self.cache.exists())
        self.cache.mkdir()
        path.write_text(json.dumps({"schema_version": 1, "rows": [self.ROW]}))
        tuning, errors = self.info()
        self.assertEqual((tuning["rows"], errors), (1, ""))

    def test_a_bad_one_is_one_warning(self):
        self.cache.mkdir()
        path = self.cache / "tuning.json"
        good = json.dumps({"schema_version": 1, "rows": [self.ROW]})
        for text, named in (("", "not a JSON object"), ("nothing", "not a JSON object"), (good[:-5], "not valid JSON"),
                            (good.replace("1,", "2,", 1), "schema_version is 2"), (good.replace('"k":', '"q":'), "k"),
                            (good.replace("1.5", '"1.5"'), "median_us"), ("\0" * 9, "NUL")):
            with self.subTest(text=text):
                path.write_text(text)
                tuning, errors = self.info()
                self.assertEqual(tuning["rows"], 0)
                self.assertEqual(errors.count("\n"), 1, errors)
                self.assertIn(str(path), errors)
                self.assertIn(named, errors)
                self.assertEqual(path.read_text(), text)
        path.unlink()
        path.mkdir()
        self.assertIn("not a regular file", self.info()[1])


class TuneWithoutGpu(TuneTest):
    def setUp(self):
        super().setUp()
        if tool.backends()["sm90"]["available"]:
            self.skipTest("this machine has a Hopper GPU")

    def test_says_why_and_writes_nothing(self):
        reason = tool.backends()["sm90"]["reason"]
        for extra in ((), ("--json",), ("--dry-run",), ("--again",), ("--output", self.folder / "out.json")):
            with self.subTest(extra=extra):
                self.refused("tune", *SHAPE, "--m", "64", *extra, code=3, names=(reason,), env=self.environment)
                self.assertEqual(self.files(), [])
                self.assertFalse(self.cache.exists())

    def test_an_earlier_file_stays(self):
        out = self.folder / "out.json"
        out.write_text("not a table")
        self.refused("tune", *SHAPE, "--output", out, code=3, env=self.environment)
        self.assertEqual(out.read_text(), "not a table")

    def test_wrong_arguments_come_first(self):
        self.refused("tune", *SHAPE, "--kernel", "warp_drive", names=("--kernel", "warp_drive", "paired"))
        self.refused("tune", *SHAPE, "--backend", "cpu", names=("--backend", "cpu", "sm90"))

    def test_no_folder_for_the_cache(self):
        bare = {name: value for name, value in os.environ.items()
                if name not in ("HOME", "XDG_CACHE_HOME", "TILEGLU_CACHE_DIR")}
        self.refused("tune", *SHAPE, names=("TILEGLU_CACHE_DIR", "--output"), env=bare)


@tool.need_backend("sm90")
class TuneOnGpu(TuneTest):
    def plan(self, m):
        result = tool.run("info", *SHAPE, "--m", m, "--json", env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)["plans"][0]["kernel"], result.stderr

    def rows(self):
        return json.loads((self.cache / "tuning.json").read_text())["rows"]

    def test_the_winner_is_planned_by_the_next_process(self):
        (row,) = self.tune("--m", "192")["rows"]
        self.assertEqual(row["status"], "tuned")
        timed = [c["median_us"] for c in row["candidates"] if c["status"] == "ok"]
        self.assertLessEqual(row["median_us"], 1.1 * min(timed))
        self.assertEqual(self.plan(192), (row["kernel"], ""))
        # Whatever row stands there is taken: not the measurement but the table decides.
        document = json.loads((self.cache / "tuning.json").read_text())
        for candidate in row["candidates"][:5]:
            document["rows"][0]["kernel"] = candidate["kernel"]
            (self.cache / "tuning.json").write_text(json.dumps(document))
            self.assertEqual(self.plan(192), (candidate["kernel"], ""))

    def test_the_second_run_goes_on(self):
        self.tune("--m", "192")
        document = self.tune("--m", "192,320", "--budget", "300")
        self.assertEqual([row["status"] for row in document["rows"]], ["known", "tuned"])
        self.assertEqual([row["m"] for row in self.rows()], [192, 320])
        document = self.tune("--m", "192", "--again")
        self.assertEqual(document["summary"]["tuned"], 1)

    def test_a_wrong_kernel_never_wins(self):
        (row,) = self.tune("--m", "192")["rows"]
        document = self.tune("--m", "192", "--again", "--inject-fault", "wrong:" + row["kernel"], code=1)
        self.assertNotEqual(document["rows"][0]["kernel"], row["kernel"])
        failed = [c["kernel"] for c in document["rows"][0]["candidates"] if c["status"] == "failed"]
        self.assertEqual(failed, [row["kernel"]])

    def test_interrupted(self):
        """Ctrl-C once the first shape is in the file: it is kept, and the exit says so."""
        command = [tool.TOOL, "tune", *SHAPE, "--m", ",".join(str(m) for m in range(192, 4096, 32))]
        with subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as process:
            process.stderr.readline()  # "tileglu tune: 1/..."
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1, errors)
        self.assertIn("stopped by SIGINT", errors)
        self.assertGreaterEqual(len(self.rows()), 1)

    def test_dry_run_writes_nothing(self):
        document = self.tune("--m", "64", "--dry-run")
        self.assertTrue(document["rows"][0]["candidates"])
        self.assertFalse(self.cache.exists())

    def test_bad_cache_is_one_warning_and_is_kept_beside(self):
        self.cache.mkdir()
        path = self.cache / "tuning.json"
        for text in ("", "{", "[]", '{"schema_version": 2, "rows": []}', "x" * 1000):
            path.write_text(text)
            kernel, errors = self.plan(192)
            self.assertTrue(kernel)
            self.assertEqual(errors.count("\n"), 1, errors)
            self.assertIn(str(path), errors)
        self.tune("--m", "64")
        self.assertEqual(pathlib.Path(str(path) + ".bad").read_text(), "x" * 1000)


if __name__ == "__main__":
    unittest.main()
