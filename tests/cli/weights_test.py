# SPDX-License-Identifier: Apache-2.0
"""Values through every naming scheme, dtype and layout, against plain Python; packing, slicing and back."""
import unittest

import tool

M, N, K = 3, 16, 8
GATE, UP, X = tool.matrix(N, K, 1), tool.matrix(N, K, 2), tool.matrix(M, K, 3)
FULL = {"BF16": "bf16", "F16": "fp16", "F32": "fp32"}


class WeightsTest(tool.ToolTest):
    def write(self, name, tensors, metadata=None):
        return tool.write_tensors(self.folder / name, tensors, metadata)

    def compute(self, weights, x, *extra, layer="0"):
        """Y of `run` as dtype, shape, values."""
        out = self.folder / "y.safetensors"
        result = tool.run("run", "--weights", weights, "--layer", layer, "--input", x, "--output", out, *extra)
        self.assertEqual(result.returncode, 0, result.stderr)
        tensors, _ = tool.read_tensors(out)
        return tensors["y"]

    def pack(self, weights, layout, *extra, name="packed.safetensors"):
        out = self.folder / name
        result = tool.run("pack", "--weights", weights, "--layout", layout, "--output", out, "--layer", "0", *extra)
        self.assertEqual(result.returncode, 0, result.stderr)
        return out

    def assert_close(self, got, expected, dtype):
        """Within one unit in the last place of the correctly rounded value."""
        unit = {"BF16": 2.0**-7, "F16": 2.0**-10, "F32": 2.0**-20}[dtype]
        self.assertEqual(len(got), len(expected))
        for value, exact in zip(got, expected):
            self.assertLessEqual(abs(value - tool.rounded(exact, dtype)), unit * abs(exact) + 1e-7)


@tool.need_backend("cpu")
class Values(WeightsTest):
    def test_fixture_is_asymmetric(self):
        self.assertNotEqual(tool.gated(X, GATE, UP), tool.gated(X, UP, GATE))

    def test_every_scheme_and_dtype(self):
        for scheme in tool.SCHEMES:
            for dtype in FULL:
                with self.subTest(scheme=scheme, dtype=dtype):
                    tensors, extra = tool.checkpoint_of(scheme, dtype, GATE, UP)
                    weights = self.write("w.safetensors", tensors)
                    x = self.write("x.safetensors", {"x": (dtype, X)})
                    got, shape, values = self.compute(weights, x, *extra)
                    self.assertEqual((got, shape), (dtype, [M, N]))
                    self.assert_close(values, tool.flat(tool.gated(X, GATE, UP)), dtype)

    def test_probe_of_one_by_one(self):
        """Field case C26: swapped halves give another number."""
        probes = [(1.0, 2.0, 1.46212), (-3.0, 5.0, -0.71139)]
        for gate, up, expected in probes:
            for scheme in tool.SCHEMES:
                tensors, extra = tool.checkpoint_of(scheme, "F32", [[gate]], [[up]])
                weights = self.write("w.safetensors", tensors)
                x = self.write("x.safetensors", {"x": ("F32", [[1.0]])})
                with self.subTest(scheme=scheme, layout="as it is"):
                    self.assertAlmostEqual(self.compute(weights, x, *extra)[2][0], expected, places=5)
                for layout in tool.PACKED_LAYOUTS[:3]:  # one row is no block of eight
                    with self.subTest(scheme=scheme, layout=layout):
                        packed = self.pack(weights, layout, *extra)
                        self.assertAlmostEqual(self.compute(packed, x, *extra)[2][0], expected, places=5)
                        repacked = self.compute(weights, x, "--repack", layout, *extra)
                        self.assertAlmostEqual(repacked[2][0], expected, places=5)

    def test_probe_of_eight_rows(self):
        """The same for blocks of eight, each row its own number."""
        gate, up = [[i - 3.0] for i in range(8)], [[2.0 * i + 1] for i in range(8)]
        expected = tool.flat(tool.gated([[1.0]], gate, up))
        x = self.write("x.safetensors", {"x": ("F32", [[1.0]])})
        for scheme in tool.SCHEMES:
            tensors, extra = tool.checkpoint_of(scheme, "F32", gate, up)
            weights = self.write("w.safetensors", tensors)
            for layout in tool.PACKED_LAYOUTS:
                with self.subTest(scheme=scheme, layout=layout):
                    packed = self.pack(weights, layout, *extra)
                    self.assert_close(self.compute(packed, x, *extra)[2], expected, "F32")

    def test_activation(self):
        weights = self.write("w.safetensors", tool.separate(("F32", GATE), ("F32", UP)))
        x = self.write("x.safetensors", {"x": ("F32", X)})
        config = self.folder / "config.json"
        cases = [(None, (), tool.silu, "default"), ("silu", (), tool.silu, "checkpoint"),
                 ("gelu_pytorch_tanh", (), tool.gelu_tanh, "checkpoint"), ("gelu", (), tool.gelu_erf, "checkpoint"),
                 ("gelu", ("--activation", "relu"), lambda g: max(g, 0.0), "--activation")]
        for named, extra, act, source in cases:
            with self.subTest(named=named, extra=extra):
                config.unlink(missing_ok=True)
                if named:
                    config.write_text(f'{{"hidden_act": "{named}"}}')
                self.assert_close(self.compute(weights, x, *extra)[2], tool.flat(tool.gated(X, GATE, UP, act)), "F32")
                document = self.document("run", "--weights", weights, "--layer", "0", "--input", x, *extra)
                self.assertEqual(document["activation_source"], source)

    def test_npy_in_and_out(self):
        weights = self.write("w.safetensors", tool.separate(("F32", GATE), ("F32", UP)))
        expected = tool.flat(tool.gated(X, GATE, UP))
        for code, dtype in (("<f4", "F32"), ("<f2", "F16")):
            x = tool.write_npy(self.folder / "x.npy", X, code)
            out = self.folder / "y.npy"
            result = tool.run("run", "--weights", weights, "--layer", "0", "--input", x, "--output", out,
                              "--output-dtype", FULL[dtype])
            self.assertEqual(result.returncode, 0, result.stderr)
            descr, shape, values = tool.read_npy(out)
            self.assertEqual((descr, shape), (code, (M, N)))
            self.assert_close(values, expected, dtype)

    def test_output_dtype(self):
        weights = self.write("w.safetensors", tool.separate(("BF16", GATE), ("BF16", UP)))
        x = self.write("x.safetensors", {"x": ("BF16", X)})
        dtype, _, values = self.compute(weights, x, "--output-dtype", "fp32")
        self.assertEqual(dtype, "F32")
        self.assert_close(values, tool.flat(tool.gated(X, GATE, UP)), "BF16")

    def test_all_layers_with_their_own_inputs(self):
        layers = {}
        for layer in (0, 1, 10):
            layers.update(tool.separate(("F32", tool.matrix(N, K, layer + 5)), ("F32", tool.matrix(N, K, layer + 6)), layer))
        weights = self.write("w.safetensors", layers)
        x = self.write("x.safetensors", {"x": ("F32", X)})
        own = self.write("own.safetensors", {f"layers.{layer}.x": ("F32", tool.matrix(M, K, layer)) for layer in (0, 1, 10)})
        for name, inputs in ((x, {0: X, 1: X, 10: X}), (own, {layer: tool.matrix(M, K, layer) for layer in (0, 1, 10)})):
            out = self.folder / "y.safetensors"
            document = self.document("run", "--weights", weights, "--layer", "all", "--input", name, "--output", out,
                                     "--check", "--runs", "1")
            self.assertEqual([row["layer"] for row in document["rows"]], [0, 1, 10])
            for row in document["rows"]:
                self.assertLess(row["error"]["relative_frobenius"], 1e-5)
            tensors, _ = tool.read_tensors(out)
            self.assertEqual(sorted(tensors), ["layers.0.y", "layers.1.y", "layers.10.y"])
            for layer, rows in inputs.items():
                expected = tool.gated(rows, tool.matrix(N, K, layer + 5), tool.matrix(N, K, layer + 6))
                self.assert_close(tensors[f"layers.{layer}.y"][2], tool.flat(expected), "F32")

    def test_misaligned_weights_are_copied(self):
        """A tensor that starts on an odd multiple of 2 inside the file."""
        weights = self.write("w.safetensors", {"a": ("BF16", [[1.0]]), **tool.separate(("BF16", GATE), ("BF16", UP))})
        x = self.write("x.safetensors", {"x": ("BF16", X)})
        self.assert_close(self.compute(weights, x)[2], tool.flat(tool.gated(X, GATE, UP)), "BF16")
        self.assert_close(self.compute(weights, x, "--output-dtype", "fp32")[2], tool.flat(tool.gated(X, GATE, UP)), "BF16")

    def test_sharded_checkpoint(self):
        tensors = tool.separate(("BF16", GATE), ("BF16", UP))
        (gate_name, gate), (up_name, up) = tensors.items()
        self.write("model-1.safetensors", {gate_name: gate})
        self.write("model-2.safetensors", {up_name: up})
        (self.folder / "model.safetensors.index.json").write_text(
            '{"weight_map": {"%s": "model-1.safetensors", "%s": "model-2.safetensors"}}' % (gate_name, up_name))
        x = self.write("x.safetensors", {"x": ("BF16", X)})
        self.assert_close(self.compute(self.folder, x)[2], tool.flat(tool.gated(X, GATE, UP)), "BF16")


class Packing(WeightsTest):
    """Needs no backend: files only."""

    def test_rows_of_every_layout(self):
        gate, up = [[float(i)] for i in range(16)], [[100.0 + i] for i in range(16)]
        weights = self.write("w.safetensors", tool.separate(("BF16", gate), ("BF16", up)))
        g, u = tool.flat(gate), tool.flat(up)
        expected = {"gate_up": g + u, "up_gate": u + g, "interleaved_1": [v for pair in zip(g, u) for v in pair],
                    "interleaved_8": g[:8] + u[:8] + g[8:] + u[8:]}
        for layout, rows in expected.items():
            tensors, metadata = tool.read_tensors(self.pack(weights, layout))
            self.assertEqual(tensors["layers.0.gate_up"], ("BF16", [32, 1], rows))
            self.assertEqual(metadata["tileglu_layout"], layout)

    def test_round_trip_is_bit_identical(self):
        for dtype in FULL:
            for scheme in tool.SCHEMES:
                tensors, extra = tool.checkpoint_of(scheme, dtype, GATE, UP)
                weights = self.write("w.safetensors", tensors)
                for layout in tool.PACKED_LAYOUTS:
                    with self.subTest(dtype=dtype, scheme=scheme, layout=layout):
                        packed = self.pack(weights, layout, *extra)
                        back = self.folder / "back.safetensors"
                        self.assertEqual(tool.run("unpack", "--weights", packed, "--output", back,
                                                  *(["--expert", "all"] if extra else [])).returncode, 0)
                        found, _ = tool.read_tensors(back)
                        (gate_name, gate), (up_name, up) = sorted(found.items())
                        self.assertTrue(gate_name.endswith("gate_proj.weight") and up_name.endswith("up_proj.weight"))
                        self.assertEqual(gate, (dtype, [N, K], tool.flat(GATE)))
                        self.assertEqual(up, (dtype, [N, K], tool.flat(UP)))

    def test_packing_twice(self):
        """Field case C27."""
        weights = self.write("w.safetensors", tool.separate(("BF16", GATE), ("BF16", UP)))
        packed = self.pack(weights, "interleaved_1")
        self.refused("pack", "--weights", packed, "--layer", "0", "--layout", "interleaved_1", "--output",
                     self.folder / "twice.safetensors", names=("--weights", "interleaved_1", "already"))
        self.assertFalse((self.folder / "twice.safetensors").exists())
        other = self.pack(packed, "interleaved_8", name="other.safetensors")
        direct = self.pack(weights, "interleaved_8", name="direct.safetensors")
        self.assertEqual(tool.read_tensors(other), tool.read_tensors(direct))
        self.refused("unpack", "--weights", weights, "--output", self.folder / "u.safetensors",
                     names=("--weights", "pack"))

    def test_slices(self):
        """Field cases C23 and C24: rank r holds rows [rN/T, (r+1)N/T) of gate and of up, in every layout."""
        rows, size = 64, 4
        gate, up = [[float(i)] * 2 for i in range(rows)], [[128.0 + i] * 2 for i in range(rows)]
        sources = {"separate": tool.separate(("BF16", gate), ("BF16", up))}
        self.write("separate.safetensors", sources["separate"])
        for layout in tool.PACKED_LAYOUTS:
            self.pack(self.folder / "separate.safetensors", layout, name=f"{layout}.safetensors")
        for source in ("separate", *tool.PACKED_LAYOUTS):
            for layout in tool.PACKED_LAYOUTS:
                for rank in range(size):
                    with self.subTest(source=source, layout=layout, rank=rank):
                        shard = self.pack(self.folder / f"{source}.safetensors", layout, "--tp", size, "--rank", rank,
                                          name="shard.safetensors")
                        _, metadata = tool.read_tensors(shard)
                        self.assertEqual((metadata["tileglu_tp_rank"], metadata["tileglu_tp_size"]), (str(rank), "4"))
                        back = self.folder / "back.safetensors"
                        self.assertEqual(tool.run("unpack", "--weights", shard, "--output", back).returncode, 0)
                        found, _ = tool.read_tensors(back)
                        part = slice(rank * rows // size, (rank + 1) * rows // size)
                        self.assertEqual(found["model.layers.0.mlp.gate_proj.weight"][2], tool.flat(gate[part]))
                        self.assertEqual(found["model.layers.0.mlp.up_proj.weight"][2], tool.flat(up[part]))

    def test_slices_that_cannot_be(self):
        weights = self.write("w.safetensors", tool.separate(("BF16", GATE), ("BF16", UP)))
        out = self.folder / "s.safetensors"
        common = ("pack", "--weights", weights, "--layer", "0", "--output", out)
        self.refused(*common, "--tp", "4", names=("--tp", "--rank"))
        self.refused(*common, "--tp", "3", "--rank", "0", names=("--tp", "3", "16"))
        self.refused(*common, "--tp", "4", "--rank", "0", "--layout", "interleaved_8", names=("interleaved_8", "n=4", "8"))
        shard = self.pack(weights, "gate_up", "--tp", "2", "--rank", "1")
        self.refused("pack", "--weights", shard, "--layer", "0", "--output", out, "--tp", "2", "--rank", "0",
                     names=("--tp", "1 of 2"))
        self.assertFalse(out.exists())

    def test_kernel_decides_the_layout(self):
        weights = self.write("w.safetensors", tool.separate(("BF16", GATE), ("BF16", UP)))
        for kernel in tool.backends()["sm90"]["kernels"]:
            if not kernel.startswith("interleave"):
                continue
            out = self.folder / "k.safetensors"
            result = tool.run("pack", "--weights", weights, "--layer", "0", "--output", out, "--kernel", kernel)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(tool.read_tensors(out)[1]["tileglu_layout"],
                             "interleaved_1" if kernel.endswith("g1") else "interleaved_8")

    def test_a_broken_layer_is_not_left_out_of_all(self):
        weights = self.write("w.safetensors", {**tool.separate(("BF16", GATE), ("BF16", UP), 0),
                                               "model.layers.1.mlp.gate_proj.weight": ("BF16", GATE)})
        self.refused("pack", "--weights", weights, "--layer", "all", "--output", self.folder / "p.safetensors",
                     names=("layers.1", "up_proj"))


if __name__ == "__main__":
    unittest.main()
