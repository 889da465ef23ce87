# SPDX-License-Identifier: Apache-2.0
"""verify and bench: their checkers catch planted faults, failures never look like results, documents are complete."""
import json
import unittest

import tool

SMALL = ("--backend", "cpu", "--n", "96", "--k", "64", "--m", "33")
QUICK = ("--samples", "2", "--min-time", "0", "--warmup", "0")
ROW_KEYS = {"model", "m", "n", "k", "dtype", "contender", "config", "median_us", "p5_us", "p95_us", "tflops", "gbps",
            "status", "reason"}


class Documents(tool.ToolTest):
    """--json: one document, with what a reader needs."""

    def test_info(self):
        document = self.document("info")
        self.assertEqual([row["backend"] for row in document["backends"]], ["sm90", "cublas", "cpu"])
        for row in document["backends"]:
            self.assertEqual(row["available"], row["reason"] == "")
        only = self.document("info", "--backend", "cpu")
        self.assertEqual([row["backend"] for row in only["backends"]], ["cpu"])

    @tool.need_backend("cpu")
    def test_info_of_a_shape(self):
        (plan,) = self.document("info", "--backend", "cpu", "--model", "qwen2.5-0.5b", "--m", "64")["plans"]
        self.assertEqual((plan["n"], plan["k"], plan["backend"], plan["status"]), (4864, 896, "cpu", "ok"))

    def test_models(self):
        rows = {row["model"]: row for row in self.document("models")["rows"]}
        self.assertEqual((rows["qwen2.5-72b"]["k"], rows["qwen2.5-72b"]["n"]), (8192, 29568))
        self.assertEqual((rows["smollm2-135m"]["k"], rows["smollm2-135m"]["n"]), (576, 1536))
        self.assertEqual(rows["gemma-2-9b"]["activation"], "gelu_tanh")
        self.assertEqual(rows["phi-4"]["layout"], "gate_up")
        for row in rows.values():
            self.assertEqual((row["k"] % 64, row["n"] % 64), (0, 0), row)
        shards = {row["model"]: row for row in self.document("models", "--tp", "8")["rows"]}
        self.assertEqual(shards["qwen2.5-7b"]["n"], 2368)
        odd = {row["model"]: row for row in self.document("models", "--tp", "7")["rows"]}
        self.assertIsNone(odd["qwen2.5-0.5b"]["n"])
        self.assertIn("4864", odd["qwen2.5-0.5b"]["reason"])

    def test_every_command(self):
        weights = tool.write_tensors(self.folder / "w.safetensors",
                                     tool.separate(("F32", tool.matrix(16, 8, 1)), ("F32", tool.matrix(16, 8, 2))))
        packed, back = self.folder / "p.safetensors", self.folder / "u.safetensors"
        document = self.document("pack", "--weights", weights, "--layer", "all", "--output", packed)
        self.assertEqual(document["rows"][0]["tensor"], "layers.0.gate_up")
        document = self.document("unpack", "--weights", packed, "--output", back)
        self.assertEqual(len(document["rows"]), 2)
        if not tool.backends()["cpu"]["available"]:
            return
        x = tool.write_npy(self.folder / "x\xe9\n.npy", tool.matrix(3, 8, 3))  # a name that JSON has to escape
        document = self.document("run", "--backend", "cpu", "--weights", weights, "--layer", "0", "--input", x)
        self.assertEqual(document["rows"][0]["status"], "ok")
        self.document("verify", *SMALL)
        self.document("bench", *SMALL, *QUICK)


@tool.need_backend("cpu")
class Verify(tool.ToolTest):
    def test_contract(self):
        document = self.document("verify", "--backend", "cpu", "--model", "qwen2.5-0.5b", "--m", "64")
        row = document["rows"][0]
        self.assertEqual((row["m"], row["n"], row["k"], row["status"]), (64, 4864, 896, "pass"))
        self.assertLessEqual(row["error"]["relative_frobenius"], row["unfused"]["relative_frobenius"])
        for key in ("worst_stripe", "share_over_1_percent", "max_ulp", "not_finite", "unwritten"):
            self.assertIn(key, row["error"])
            self.assertIn(key, row["unfused"])

    def test_faults_are_caught(self):
        """The same command that passes fails for every planted fault, in every dtype."""
        for dtype in ("bf16", "fp16", "fp32"):
            self.document("verify", *SMALL, "--dtype", dtype)
            for fault in ("stripe", "swap", "row", "element", "unwritten", "guard"):
                with self.subTest(dtype=dtype, fault=fault):
                    document = self.document("verify", *SMALL, "--dtype", dtype, "--inject-fault", fault, code=1)
                    self.assertEqual(document["status"], "fail")
                    self.assertEqual(document["rows"][0]["status"], "fail")
                    self.assertTrue(document["rows"][0]["reason"])

    GATE = ("--activation", "swiglu", "--alpha", "1.702", "--limit", "7", "--up-offset", "1", "--bias", "both", "--addend",
            "interleaved_1", "--save-preactivations", "separate")

    def test_gates_and_operands(self):
        """swiglu with its numbers, every operand, both roundings; the checks still see faults."""
        for rounding in ("once", "unfused"):
            row = self.document("verify", *SMALL, *self.GATE, "--rounding", rounding)["rows"][0]
            self.assertEqual((row["status"], row["rounding"], row["limit"], row["up_offset"]), ("pass", rounding, 7, 1))
            self.assertEqual(row["operands"], "bias_gate, bias_up, addend:interleaved_1, preactivations:separate")
            for fault in ("stripe", "swap", "row"):
                self.document("verify", *SMALL, *self.GATE, "--rounding", rounding, "--inject-fault", fault, code=1)
        row = self.document("bench", *SMALL, *QUICK, *self.GATE)["rows"][0]
        self.assertEqual((row["status"], row["activation"], row["operands"][:9]), ("ok", "swiglu", "bias_gate"))

    def test_numbers_belong_to_swiglu(self):
        """Field case C18: a limit is never dropped in silence."""
        for command in ("verify", "bench"):
            self.refused(command, *SMALL, "--limit", "7", names=("--limit=7", "silu", "swiglu"))
        self.refused("verify", *SMALL, "--activation", "swiglu", "--limit", "-1", names=("--limit=-1",))
        self.refused("verify", *SMALL, "--bias", "left", names=("--bias=left", "gate, up, both"))

    def test_all_has_every_gate(self):
        """verify --all walks activations x types x roundings x operands."""
        rows = [row for row in self.document("verify", "--backend", "cpu", "--kernel", "dot_blocked", "--all")["rows"]
                if row["status"] == "pass"]
        gates = {(row["dtype"], row["activation"], row["rounding"], row["operands"] != "") for row in rows}
        self.assertEqual(len(gates), 3 * 7 * 2 * 2)
        self.assertGreaterEqual(len({row["operands"] for row in rows}), 7)

    def test_faults_are_caught_at_small_scale(self):
        """Field case C12: inputs so small that an absolute tolerance would hide a zeroed stripe."""
        shape = ("--backend", "cpu", "--n", "712", "--k", "640", "--m", "64", "--a-scale", "0.02")
        for dtype in ("bf16", "fp16"):
            self.document("verify", *shape, "--dtype", dtype)
            self.document("verify", *shape, "--dtype", dtype, "--inject-fault", "stripe", code=1)

    def test_ragged_shapes(self):
        for n, k in ((3420, 1280), (1234, 40), (8, 8), (6, 7), (3, 5), (1, 1)):
            self.document("verify", "--backend", "cpu", "--n", n, "--k", k, "--m", "1,33")

    def test_nothing_to_compute(self):
        for shape in (("--m", "0", "--n", "64", "--k", "64"), ("--m", "16", "--n", "0", "--k", "64"),
                      ("--m", "16", "--n", "256", "--k", "0")):
            self.document("verify", "--backend", "cpu", *shape)

    def test_all_kernels_and_layouts(self):
        kernels = tool.backends()["cpu"]["kernels"]
        for layout in ("separate", *tool.PACKED_LAYOUTS):
            document = self.document("verify", *SMALL, "--kernel", "all", "--layout", layout)
            self.assertEqual({row["kernel"] for row in document["rows"]}, set(kernels))

    def test_shards_of_real_widths(self):
        """Field case C25."""
        for n in (2368, 3696, 1376, 856):
            self.document("verify", "--backend", "cpu", "--n", n, "--k", "256", "--m", "1,17,130")

    def test_model_brings_its_activation(self):
        (row, *_) = self.document("verify", "--backend", "cpu", "--model", "gemma-3-1b", "--tp", "8", "--m", "2")["rows"]
        self.assertEqual(row["activation"], "gelu_tanh")


@tool.need_backend("cpu")
class Bench(tool.ToolTest):
    def bench(self, *extra, code=0):
        out = self.folder / "bench.json"
        document = self.document("bench", *SMALL, *QUICK, "--output", out, *extra, code=code)
        self.assertEqual(json.loads(out.read_text())["rows"], document["rows"])
        for row in document["rows"]:
            self.assertLessEqual(ROW_KEYS, set(row))
        return document

    def baseline(self):
        unfused = [kernel for kernel in tool.backends()["cpu"]["kernels"] if kernel.startswith("two_gemms")]
        self.assertTrue(unfused)
        return unfused[0]

    def test_document(self):
        document = self.bench("--seed", "7")
        for key in ("device", "commit", "method", "environment", "summary"):
            self.assertIn(key, document)
        self.assertEqual(document["rows"][0]["contender"], "tileglu")
        self.assertIn(self.baseline(), [row["contender"] for row in document["rows"]])
        for row in document["rows"]:
            self.assertEqual(row["status"], "ok")
            self.assertGreaterEqual(len(row["samples_us"]), 2)
            self.assertLessEqual(row["p5_us"], row["median_us"])
            self.assertLessEqual(row["median_us"], row["p95_us"])
            self.assertAlmostEqual(row["tflops"], 4 * 33 * 96 * 64 / row["median_us"] * 1e-6)
            self.assertAlmostEqual(row["gbps"], 2 * (33 * 64 + 2 * 96 * 64 + 33 * 96) / row["median_us"] * 1e-3)
            self.assertGreaterEqual(row["buffer_sets"], 2)
        self.assertEqual(document["summary"], {"ok": len(document["rows"]), "failed": 0, "skipped": 0})

    def test_warm(self):
        self.assertEqual({row["buffer_sets"] for row in self.bench("--l2", "warm")["rows"]}, {1})

    def test_failures_never_look_like_results(self):
        """Field case C32: a wrong result and a failed launch get no time, and the exit code says so."""
        for fault, status in (("wrong", "wrong"), ("error", "error")):
            with self.subTest(fault=fault):
                document = self.bench("--inject-fault", f"{fault}:tileglu", code=1)
                first, *others = document["rows"]
                self.assertEqual((first["contender"], first["status"]), ("tileglu", status))
                self.assertTrue(first["reason"])
                for key in ("median_us", "p5_us", "p95_us", "tflops", "gbps"):
                    self.assertIsNone(first[key])
                self.assertEqual(first["samples_us"], [])
                for row in others:
                    self.assertEqual(row["status"], "ok")
                    self.assertNotIn("tileglu", row["speedup_over"])
                self.assertEqual(document["summary"]["failed"], 1)

    def test_a_wrong_baseline_is_nobodys_baseline(self):
        document = self.bench("--inject-fault", f"wrong:{self.baseline()}", code=1)
        self.assertEqual(document["rows"][0]["speedup_over"], {})

    def test_impossible_configuration(self):
        """A layout that the shape does not allow: an error for a contender asked for by name."""
        out = self.folder / "bench.json"
        out.write_text("of an earlier run")
        result = tool.run("bench", "--backend", "cpu", "--n", "12", "--k", "8", "--m", "4", "--layout", "interleaved_8",
                          "--contenders", "tileglu", *QUICK, "--output", out, "--json")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1)
        (row,) = json.loads(out.read_text())["rows"]
        self.assertEqual((row["status"], row["median_us"]), ("error", None))
        self.assertIn("12", row["reason"])

    def test_old_output_goes(self):
        out = self.folder / "bench.json"
        out.write_text("of an earlier run")
        self.bench()
        self.assertEqual(self.files(), ["bench.json"])

    def test_old_output_stays_for_wrong_arguments(self):
        out = self.folder / "bench.json"
        out.write_text("of an earlier run")
        self.refused("bench", *SMALL, "--contenders", "nobody", "--output", out, names=("nobody",))
        self.assertEqual(out.read_text(), "of an earlier run")

    def test_rates_above_the_peak_are_flagged(self):
        for option in ("--peak-tflops", "--peak-gbps"):
            document = self.bench(option, "1e-9", code=1)
            self.assertEqual({row["status"] for row in document["rows"]}, {"above_peak"})

    def test_flags_of_a_contender_reach_the_plan(self):
        document = self.bench("--contenders", "tileglu,tileglu+prefetch,tileglu+invariant", code=1)
        rows = {row["contender"]: row for row in document["rows"]}
        self.assertEqual([row["status"] for row in rows.values()], ["ok", "ok", "error"])
        self.assertIn("TILEGLU_BATCH_INVARIANT", rows["tileglu+invariant"]["reason"])  # which the CPU cannot promise

    def test_list_of_shapes(self):
        result = tool.run("bench", "--backend", "cpu", "--model", "smollm2-135m", "--tp", "8", "--m", "1,5", *QUICK,
                          "--contenders", "tileglu", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = json.loads(result.stdout)["rows"]
        self.assertEqual([(row["model"], row["m"], row["n"]) for row in rows],
                         [("smollm2-135m", 1, 192), ("smollm2-135m", 5, 192)])


if __name__ == "__main__":
    unittest.main()
