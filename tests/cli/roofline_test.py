# SPDX-License-Identifier: Apache-2.0
"""`tileglu roofline`: traffic by path, the roof, operating points and fusion efficiency, on numbers done by hand."""
import json
import unittest

import tool

M, N, K = 4096, 4864, 896
FLOPS = 4 * M * N * K
BYTES = {
    "fused": 2 * (M * K + 2 * N * K + M * N),
    "merged": 2 * (M * K + 2 * N * K + 5 * M * N),
    "two_gemms": 2 * (2 * M * K + 2 * N * K + 7 * M * N),
    "gemm_only": 2 * (M * K + 2 * N * K + 2 * M * N),
}


def bench_row(contender, median_us, **more):
    return {"model": "x", "m": M, "n": N, "k": K, "dtype": "bf16", "contender": contender, "config": "c", "launch": "graph",
            "median_us": median_us, "status": "ok", "reason": ""} | more


class Roofline(tool.ToolTest):
    def bench_file(self, *rows, name="bench.json", **more):
        ceilings = {"gemm_tflops": 800.0, "read_gbps": 4000.0, "copy_gbps": 3900.0}
        path = self.folder / name
        path.write_text(json.dumps({"schema_version": 1, "device": "G", "ceilings": ceilings, "rows": rows} | more))
        return path

    def test_intensities(self):
        document = self.document("roofline", "--n", N, "--k", K, "--m", f"1,{M}", "--gpu", "h100")
        self.assertEqual(document["roof"]["source"], "data sheet of h100")
        self.assertAlmostEqual(document["roof"]["ridge"], 989.4e3 / 3350)
        few, many = document["rows"]
        for path, size in BYTES.items():
            self.assertEqual(many["paths"][path]["bytes"], size)
            self.assertAlmostEqual(many["paths"][path]["intensity"], FLOPS / size)
        self.assertAlmostEqual(many["paths"]["merged"]["fused_is_higher_by"], BYTES["merged"] / BYTES["fused"] - 1)
        self.assertEqual(many["crosses_ridge_from"], ["two_gemms"])  # 230 < 295 < 319 < 1105
        self.assertEqual(many["paths"]["fused"]["attainable_tflops"], 989.4)
        self.assertEqual(few["paths"]["fused"]["bound"], "memory")
        self.assertAlmostEqual(few["paths"]["fused"]["attainable_tflops"], few["paths"]["fused"]["intensity"] * 3.35)

    def test_elements_of_four_bytes_halve_the_intensity(self):
        rows = [self.document("roofline", "--n", N, "--k", K, "--m", M, "--dtype", dtype)["rows"][0] for dtype in ("bf16", "fp32")]
        self.assertAlmostEqual(rows[0]["paths"]["fused"]["intensity"], 2 * rows[1]["paths"]["fused"]["intensity"])

    def test_no_roof_on_a_machine_without_a_gpu(self):
        if tool.backends()["cublas"]["available"]:
            self.skipTest("there is a GPU here")
        document = self.document("roofline", "--n", N, "--k", K, "--m", M)
        self.assertIsNone(document["roof"])
        self.assertIsNone(document["rows"][0]["paths"]["fused"]["bound"])
        self.assertIn("no roof", tool.run("roofline", "--n", N, "--k", K).stdout)

    def test_points_and_fusion_of_a_bench_file(self):
        path = self.bench_file(bench_row("torch_eager", 200.0), bench_row("tileglu", 100.0), bench_row("torch_compile", 150.0),
                               bench_row("tileglu", 120.0, launch="stream"),
                               bench_row("paired", None, status="failed"), bench_row("quack", 9.0, status="wrong"))
        document = self.document("roofline", "--bench", path)
        self.assertEqual(document["roof"]["source"], "measured on G")
        self.assertEqual(len(document["rows"]), 1)
        points = {(p["contender"], p["launch"]): p for p in document["points"]}
        self.assertEqual(set(points), {("torch_eager", "graph"), ("tileglu", "graph"), ("tileglu", "stream"), ("torch_compile", "graph")})
        self.assertAlmostEqual(points["tileglu", "graph"]["tflops"], FLOPS / 100 * 1e-6)
        self.assertAlmostEqual(points["tileglu", "graph"]["share_of_attainable"], FLOPS / 100 * 1e-6 / 800)
        self.assertEqual(points["torch_eager", "graph"]["path"], "two_gemms")
        self.assertIsNone(points["torch_compile", "graph"]["path"])
        (entry,) = document["fusion"]  # of the same launch only
        predicted = 200 / (200 - (BYTES["two_gemms"] - BYTES["fused"]) / 4000 * 1e-3)
        self.assertAlmostEqual(entry["predicted_speedup"], predicted)
        self.assertAlmostEqual(entry["efficiency"], 2.0 / predicted)

    def test_bytes_that_stayed_in_the_cache_predict_nothing(self):
        path = self.bench_file(bench_row("torch_eager", 20.0), bench_row("tileglu", 10.0))
        (entry,) = self.document("roofline", "--bench", path)["fusion"]
        self.assertIsNone(entry["efficiency"])
        self.assertIn("cache", entry["reason"])

    def test_what_the_user_gives_overrules(self):
        path = self.bench_file(bench_row("tileglu", 100.0))
        roof = self.document("roofline", "--bench", path, "--peak-tflops", 10, "--peak-gbps", 1000)["roof"]
        self.assertEqual((roof["tflops"], roof["gbps"], roof["ridge"], roof["source"]), (10, 1000, 10, "given"))

    def test_files_that_are_none(self):
        rows = [bench_row("tileglu", 1.0)]
        for more, name in (({"schema_version": 7}, "schema_version"), ({"rows": 3}, "rows"),
                           ({"rows": [*rows, 5]}, "row 1"), ({"rows": [bench_row("", 1.0)]}, "contender"),
                           ({"rows": [bench_row("a", 1.0, dtype="fp8")]}, "fp8"), ({"rows": [bench_row("a", 1.0, m=-1)]}, "row 0")):
            with self.subTest(name):
                self.refused("roofline", "--bench", self.bench_file(*rows, **more), names=("--bench", name))
        self.refused("roofline", "--bench", self.folder / "none.json", names=("--bench", "none.json"))
        broken = self.folder / "broken.json"
        broken.write_text('{"schema_version": 1,')
        self.refused("roofline", "--bench", broken, names=("--bench", "broken.json"))

    def test_wrong_arguments(self):
        shape = ("--n", N, "--k", K)
        self.refused("roofline", names=("--model", "--n"))
        self.refused("roofline", *shape, "--gpu", "h300", names=("--gpu", "h300", "h100"))
        self.refused("roofline", *shape, "--peak-tflops", 5, names=("--peak-gbps",))
        self.refused("roofline", *shape, "--peak-tflops", 0, "--peak-gbps", 1, names=("--peak-tflops", "0"))


if __name__ == "__main__":
    unittest.main()
