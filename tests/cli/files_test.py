# SPDX-License-Identifier: Apache-2.0
"""Bad files and bad places: the right exit code, one line, nothing left behind, an old output as it was."""
import contextlib
import os
import shlex
import struct
import subprocess
import unittest

import tool

M, N, K = 3, 16, 8
GATE, UP, X = tool.matrix(N, K, 1), tool.matrix(N, K, 2), tool.matrix(M, K, 3)


@tool.need_backend("cpu")
class BadInput(tool.ToolTest):
    def setUp(self):
        super().setUp()
        self.weights = tool.write_tensors(self.folder / "w.safetensors",
                                          tool.separate(("BF16", GATE), ("BF16", UP)))
        self.x = tool.write_tensors(self.folder / "x.safetensors", {"x": ("BF16", X)})
        self.out = self.folder / "y.safetensors"

    def refuse_everywhere(self, weights, names):
        """run, pack and unpack must refuse these weights and leave no output."""
        before = self.files()
        self.refused("run", "--weights", weights, "--layer", "0", "--input", self.x, "--output", self.out,
                     names=("--weights", *names))
        self.refused("pack", "--weights", weights, "--layer", "all", "--output", self.out, names=("--weights", *names))
        self.refused("unpack", "--weights", weights, "--output", self.out, "--json", names=("--weights", *names))
        self.assertEqual(self.files(), before)

    def test_missing(self):
        self.refuse_everywhere(self.folder / "absent.safetensors", ["absent.safetensors"])

    def test_folder_without_weights(self):
        (self.folder / "empty").mkdir()
        self.refuse_everywhere(self.folder / "empty", ["empty"])

    def test_folder_named_as_a_file(self):
        (self.folder / "d.safetensors").mkdir()
        self.refuse_everywhere(self.folder / "d.safetensors", ["d.safetensors"])

    def test_folder_as_input(self):
        for suffix in (".npy", ".safetensors"):
            (self.folder / ("d" + suffix)).mkdir()
            self.refused("run", "--weights", self.weights, "--layer", "0", "--input", self.folder / ("d" + suffix),
                         names=("--input", "d" + suffix))

    @unittest.skipIf(os.geteuid() == 0, "root may read everything")
    def test_unreadable(self):
        self.weights.chmod(0)
        self.refuse_everywhere(self.weights, ["w.safetensors"])

    def test_unreadable_device(self):
        os.symlink("/proc/self/mem", self.folder / "m.safetensors")  # opens, but cannot be read or mapped
        self.refuse_everywhere(self.folder / "m.safetensors", ["m.safetensors"])

    def test_hostile(self):
        good = self.weights.read_bytes()
        length = struct.unpack("<Q", good[:8])[0]
        header = good[8:8 + length]
        hostile = {
            "empty": b"",
            "short": good[:7],
            "cut_by_one": good[:-1],
            "cut_to_half": good[:len(good) // 2],
            "one_too_many": good + b"\0",
            "header_of_2^63": struct.pack("<Q", 2**63 - 1) + good[8:],
            "header_past_the_end": struct.pack("<Q", len(good)) + good[8:],
            "not_json": struct.pack("<Q", 8) + b"hello!!!" + good[8 + length:],
            "lfs_pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 1234\n",
            "overlap": good[:8] + header.replace(b'"data_offsets": [256, 512]', b'"data_offsets": [128, 384]') +
                       good[8 + length:],
            "negative": good[:8] + header.replace(b"[16, 8]", b"[-6, 8]") + good[8 + length:],
            "huge_shape": good[:8] + header.replace(b"[16, 8]", b"[9e18,8]"[:7]) + good[8 + length:],
            "unknown_dtype": good[:8] + header.replace(b'"BF16"', b'"XX16"') + good[8 + length:],
        }
        for name, content in hostile.items():
            with self.subTest(name=name):
                self.assertNotEqual(content, good)
                path = self.folder / f"{name}.safetensors"
                path.write_bytes(content)
                self.refuse_everywhere(path, [path.name])

    def test_lfs_pointer_is_called_by_its_name(self):
        path = self.folder / "pointer.safetensors"
        path.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 1234\n")
        result = tool.run("pack", "--weights", path, "--layer", "0", "--output", self.out)
        self.assertRegex(result.stderr.lower(), "lfs")

    def test_broken_pairs(self):
        pairs = {
            "no_up": {"model.layers.0.mlp.gate_proj.weight": ("BF16", GATE)},
            "unequal": tool.separate(("BF16", GATE), ("BF16", UP[:-8])),
            "two_dtypes": tool.separate(("BF16", GATE), ("F16", UP)),
            "bias": {**tool.separate(("BF16", GATE), ("BF16", UP)),
                     "model.layers.0.mlp.gate_proj.bias": ("BF16", [[1.0] * N])},
        }
        for name, tensors in pairs.items():
            with self.subTest(name=name):
                path = tool.write_tensors(self.folder / f"{name}.safetensors", tensors)
                self.refused("run", "--weights", path, "--layer", "0", "--input", self.x, names=("layers.0",))
                self.refused("pack", "--weights", path, "--layer", "all", "--output", self.out, names=("layers.0",))
        self.assertNotIn("y.safetensors", self.files())

    def test_index_naming_an_absent_shard(self):
        (self.folder / "model.safetensors.index.json").write_text(
            '{"weight_map": {"model.layers.0.mlp.gate_proj.weight": "model-00001-of-00002.safetensors"}}')
        self.refuse_everywhere(self.folder / "model.safetensors.index.json", ["model-00001-of-00002.safetensors"])

    def test_layer_that_is_not_there(self):
        self.refused("run", "--weights", self.weights, "--layer", "7", "--input", self.x, names=("7",))
        self.refused("run", "--weights", self.weights, "--layer", "0", "--expert", "1", "--input", self.x, names=("1",))
        self.refused("run", "--weights", self.x, "--layer", "all", "--input", self.x, names=("--weights",))
        self.refused("run", "--weights", self.weights, "--input", self.x, names=("--layer",))

    def test_depth_and_dtype_of_the_input(self):
        narrow = tool.write_npy(self.folder / "narrow.npy", tool.matrix(M, K - 1, 3))
        self.refused("run", "--weights", self.weights, "--layer", "0", "--input", narrow,
                     names=("[3, 7]", "[16, 8]", "k=8"))
        fp32 = tool.write_npy(self.folder / "fp32.npy", X)
        self.refused("run", "--weights", self.weights, "--layer", "0", "--input", fp32,
                     names=("fp32", "bf16", "--convert-input"))
        self.assertEqual(tool.run("run", "--weights", self.weights, "--layer", "0", "--input", fp32,
                                  "--convert-input").returncode, 0)
        self.refused("run", "--weights", self.weights, "--layer", "0", "--input", self.x, "--dtype", "fp16",
                     names=("--dtype", "fp16", "bf16"))

    def test_npy_of_bf16(self):
        out = self.folder / "y.npy"
        self.refused("run", "--weights", self.weights, "--layer", "0", "--input", self.x, "--output", out,
                     names=("--output", "bf16", "--output-dtype"))
        self.assertFalse(out.exists())

    def test_unknown_activation_of_the_model(self):
        (self.folder / "config.json").write_text('{"hidden_act": "swiglu_clamped"}')
        self.refused("run", "--weights", self.weights, "--layer", "0", "--input", self.x,
                     names=("swiglu_clamped", "--activation"))


@tool.need_backend("cpu")
class BadOutput(tool.ToolTest):
    def setUp(self):
        super().setUp()
        weights = tool.write_tensors(self.folder / "w.safetensors", tool.separate(("F32", GATE), ("F32", UP)))
        packed = self.folder / "p.safetensors"
        x = tool.write_tensors(self.folder / "x.safetensors", {"x": ("F32", X)})
        self.assertEqual(tool.run("pack", "--weights", weights, "--layer", "0", "--output", packed).returncode, 0)
        self.commands = [
            ("run", "--weights", weights, "--layer", "0", "--input", x),
            ("pack", "--weights", weights, "--layer", "0"),
            ("unpack", "--weights", packed),
            ("bench", "--n", "64", "--k", "64", "--m", "4", "--samples", "1", "--min-time", "0", "--warmup", "0"),
        ]

    def test_places_that_cannot_be(self):
        (self.folder / "folder.safetensors").mkdir()
        for command in self.commands:
            for place in (self.folder / "absent" / "y.safetensors", self.folder / "folder.safetensors",
                          self.folder / "w.safetensors" / "y.safetensors"):
                with self.subTest(command=command[0], place=place.name):
                    before = self.files()
                    self.refused(*command, "--output", place, names=("--output",))
                    self.assertEqual(self.files(), before)

    def test_extension(self):
        for command in self.commands[:3]:
            self.refused(*command, "--output", self.folder / "y.bin", names=("--output", "y.bin"))

    def test_device_is_not_replaced(self):
        for command in self.commands[:3]:
            link = self.folder / "full.safetensors"
            if not link.is_symlink():
                link.symlink_to("/dev/full")
            self.refused(*command, "--output", link, names=("--output",))
        self.assertFalse(os.path.isfile("/dev/full"))

    @contextlib.contextmanager
    def full_disk(self):
        """A file system that holds next to nothing, with an old y.safetensors on it."""
        disk = self.folder / "disk"
        disk.mkdir()
        mounted = os.geteuid() == 0 and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", disk], stderr=subprocess.DEVNULL, check=False
        ).returncode == 0
        if not mounted:
            self.skipTest("cannot mount a small tmpfs here (needs root): a full disk was not tried")
        try:
            (disk / "y.safetensors").write_bytes(b"old")
            (disk / "filler").write_bytes(b"x" * 8192)
            yield disk
        finally:
            subprocess.run(["umount", disk], check=True)

    def test_full_disk(self):
        big = tool.matrix(64, 64, 1)
        weights = tool.write_tensors(self.folder / "big.safetensors", tool.separate(("F32", big), ("F32", big)))
        packed = self.folder / "big_packed.safetensors"
        self.assertEqual(tool.run("pack", "--weights", weights, "--layer", "0", "--output", packed).returncode, 0)
        x = tool.write_npy(self.folder / "big.npy", big)
        with self.full_disk() as disk:
            out = disk / "y.safetensors"
            for command in (("run", "--weights", weights, "--layer", "0", "--input", x),
                            ("pack", "--weights", weights, "--layer", "0"), ("unpack", "--weights", packed)):
                with self.subTest(command=command[0]):
                    self.refused(*command, "--output", out, names=("--output", "space"))
                    self.assertEqual(sorted(os.listdir(disk)), ["filler", "y.safetensors"])
                    self.assertEqual(out.read_bytes(), b"old")

    def test_no_temporary_file_stays(self):
        for number, command in enumerate(self.commands):
            out = self.folder / f"out{number}.safetensors"
            result = tool.run(*command, "--output", out)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertTrue(out.exists())
        self.assertEqual([name for name in self.files() if "tmp" in name], [])


class BadStandardOutput(tool.ToolTest):
    COMMANDS = (("info",), ("models",), ("models", "--json"), ("--help",), ("verify", "--help"), ("--version",))

    def fails(self, arguments, stdout, word):
        result = tool.run(*arguments, stdout=stdout)
        self.assertEqual(result.returncode, 1, f"{arguments} {result.stderr}")
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertIn("standard output", result.stderr)
        self.assertIn(word, result.stderr)

    def test_full_device(self):
        for arguments in self.COMMANDS:
            with self.subTest(arguments=arguments), open("/dev/full", "w") as full:
                self.fails(arguments, full, "space")

    def test_reader_that_is_gone(self):
        for arguments in self.COMMANDS:
            with self.subTest(arguments=arguments):
                read, write = os.pipe()
                os.close(read)
                with os.fdopen(write, "w") as pipe:
                    self.fails(arguments, pipe, "pipe")

    def test_closed(self):
        for arguments in self.COMMANDS:
            with self.subTest(arguments=arguments):
                line = shlex.join([tool.TOOL, *map(str, arguments)]) + " >&-"
                result = subprocess.run(["sh", "-c", line], stderr=subprocess.PIPE, text=True, check=False)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)

    def test_everything_closed(self):
        for redirection in (">&- 2>&-", "<&- >&- 2>&-", "2>&-"):
            result = subprocess.run(["sh", "-c", f"{shlex.quote(tool.TOOL)} models {redirection}"], stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True, check=False)
            self.assertIn(result.returncode, (0, 1), redirection)

    @tool.need_backend("cpu")
    def test_output_file_does_not_take_the_place_of_a_closed_descriptor(self):
        weights = tool.write_tensors(self.folder / "w.safetensors", tool.separate(("F32", GATE), ("F32", UP)))
        out = self.folder / "p.safetensors"
        pack = [tool.TOOL, "pack", "--weights", weights, "--layer", 0, "--layout", "gate_up", "--output", out]
        result = subprocess.run(["sh", "-c", shlex.join(map(str, pack)) + " <&- >&- 2>&-"], check=False)
        self.assertEqual(result.returncode, 1)
        tensors, _ = tool.read_tensors(out)
        self.assertEqual(tensors["layers.0.gate_up"][2], tool.flat(GATE + UP))


if __name__ == "__main__":
    unittest.main()
