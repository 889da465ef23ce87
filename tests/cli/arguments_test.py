# SPDX-License-Identifier: Apache-2.0
"""Every wrong argument: exit code 2, one line that names the argument and the value, nothing on stdout."""
import unittest

import tool

SHAPE = ("--n", "64", "--k", "64")
WRONG = [
    # arguments, what the line must name
    ((), ("sub-command", "info", "verify")),
    (("frobnicate",), ("frobnicate", "info", "bench")),
    (("roofline",), ("roofline",)),
    (("report",), ("report",)),
    (("--frobnicate",), ("--frobnicate",)),
    (("info", "--frobnicate"), ("--frobnicate",)),
    (("info", "extra"), ("extra",)),
    (("info", "--backend", "tpu"), ("--backend", "tpu", "sm90", "cublas", "cpu")),
    (("info", "--backend"), ("--backend",)),
    (("info", "--activation", "swish2"), ("--activation", "swish2", "gelu_tanh")),
    (("info", "--dtype", "fp8"), ("--dtype", "fp8", "bf16")),
    (("info", "--device", "-1"), ("--device", "-1", "from 0")),
    (("info", "--device", "x"), ("--device", "x", "integer")),
    (("models", "--tp", "0"), ("--tp", "0", "from 1")),
    (("models", "--tp", "two"), ("--tp", "two")),
    (("verify",), ("--model", "--n", "--k")),
    (("verify", "--n", "64"), ("--n", "--k")),
    (("verify", "--model", "qwen9-1b"), ("--model", "qwen9-1b", "models")),
    (("verify", "--model", "qwen2.5-0.5b", "--n", "64"), ("--model", "--n")),
    (("verify", "--model", "qwen2.5-0.5b", "--k", "64"), ("--model", "--k")),
    (("verify", "--model", "qwen2.5-0.5b", "--tp", "3"), ("--tp", "3", "4864")),
    (("verify", "--model", "qwen2.5-7b", "--tp", "5"), ("--tp", "5", "18944")),
    (("verify", "--n", "13696", "--k", "64", "--tp", "3"), ("--tp", "3", "13696")),
    (("verify", *SHAPE, "--m", "0x10"), ("--m", "0x10", "integer")),
    (("verify", *SHAPE, "--m", "-1"), ("--m", "-1", "from 0")),
    (("verify", *SHAPE, "--m", "1,,2"), ("--m", "1,,2", "empty")),
    (("verify", *SHAPE, "--m", "1,"), ("--m", "empty")),
    (("verify", *SHAPE, "--m", ""), ("--m",)),
    (("verify", *SHAPE, "--m", "99999999999999999999"), ("--m", "99999999999999999999")),
    (("verify", *SHAPE, "--m", "1.5"), ("--m", "1.5")),
    (("verify", *SHAPE, "--m", "1", "--m", "2"), ("--m",)),
    (("verify", "--n", "64", "--k", "99999999999"), ("--k", "99999999999", "to")),
    (("verify", *SHAPE, "--m", "2147483647", "--dtype", "fp32"), ("GiB",)),
    (("verify", *SHAPE, "--layout", "diagonal"), ("--layout", "diagonal", "interleaved_8")),
    (("verify", *SHAPE, "--seed", "-3"), ("--seed", "-3")),
    (("verify", *SHAPE, "--a-scale", "nan"), ("--a-scale", "nan")),
    (("verify", *SHAPE, "--all"), ("--all",)),
    (("verify", *SHAPE, "--inject-fault", "meteor"), ("--inject-fault", "meteor", "stripe")),
    (("bench", *SHAPE, "--m", "0"), ("--m", "0", "from 1")),
    (("bench", *SHAPE, "--l2", "tepid"), ("--l2", "tepid", "cold")),
    (("bench", *SHAPE, "--samples", "0"), ("--samples", "0", "from 1")),
    (("bench", *SHAPE, "--min-time", "-1"), ("--min-time", "-1")),
    (("bench", *SHAPE, "--cuda-graph", "maybe"), ("--cuda-graph", "maybe")),
    (("tune",), ("--model", "--n", "--k")),
    (("tune", *SHAPE, "--m", "0"), ("--m", "0", "from 1")),
    (("tune", *SHAPE, "--budget", "0"), ("--budget", "0", "from 1")),
    (("tune", *SHAPE, "--backend", "cublas"), ("--backend", "cublas", "sm90")),
    (("tune", *SHAPE, "--kernel", "nobody"), ("--kernel", "nobody")),
    (("run",), ("--",)),
    (("run", "--weights", "w.safetensors"), ("--input",)),
    (("run", "--weights", "w.safetensors", "--input", "x.npy", "--layer", "minus"), ("--layer", "minus")),
    (("run", "--weights", "w.safetensors", "--input", "x.npy", "--layer", "0", "--runs", "0"), ("--runs", "0")),
    (("run", "--weights", "w.safetensors", "--input", "x.npy", "--layer", "0", "--expert", "-1"), ("--expert", "-1")),
    (("run", "--weights", "w.safetensors", "--input", "x.npy", "--layer", "0", "--output-dtype", "int8"),
     ("--output-dtype", "int8")),
    (("pack", "--weights", "w.safetensors", "--layer", "0"), ("--output",)),
    (("pack", "--weights", "w.safetensors", "--layer", "0", "--output", "p.safetensors", "--tp", "2"),
     ("--tp", "--rank")),
    (("pack", "--weights", "w.safetensors", "--layer", "0", "--output", "p.safetensors", "--rank", "0"),
     ("--rank", "--tp")),
    (("pack", "--weights", "w.safetensors", "--layer", "0", "--output", "p.safetensors", "--tp", "2", "--rank", "2"),
     ("--rank", "2", "1")),
    (("pack", "--weights", "w.safetensors", "--layer", "0", "--output", "p.safetensors", "--layout", "separate"),
     ("--layout", "separate", "unpack")),
    (("pack", "--weights", "w.safetensors", "--layer", "0", "--output", "p.safetensors", "--kernel", "nobody"),
     ("--kernel", "nobody")),
    (("unpack", "--weights", "w.safetensors"), ("--output",)),
]
COMMANDS = ("info", "models", "run", "verify", "bench", "tune", "pack", "unpack")


class WrongArguments(tool.ToolTest):
    def test_each(self):
        for arguments, names in WRONG:
            with self.subTest(arguments=arguments):
                self.refused(*arguments, names=names)
                if arguments and arguments[0] in COMMANDS:
                    self.refused(*arguments, "--json", names=names)

    @tool.need_backend("cpu")
    def test_kernel_names(self):
        for command in ("verify", "bench"):
            with self.subTest(command=command):
                self.refused(command, *SHAPE, "--backend", "cpu", "--kernel", "warp_drive",
                             names=("--kernel", "warp_drive", "onednn_blocked"))
        self.refused("bench", *SHAPE, "--backend", "cpu", "--contenders", "tileglu,warp_drive",
                     names=("--contenders", "warp_drive"))
        for graph in (("--cuda-graph", "on"), ("--cuda-graph",), ("--cuda-graph", "--samples", "1")):
            self.refused("bench", *SHAPE, "--backend", "cpu", *graph, names=("--cuda-graph", "GPU"))


class Help(tool.ToolTest):
    def test_help_is_fine(self):
        for command in COMMANDS:
            result = tool.run(command, "--help")
            self.assertEqual(result.returncode, 0)
            self.assertIn("--json", result.stdout)
            self.assertIn("--backend", result.stdout)
            self.assertNotIn("--inject-fault", result.stdout)
        result = tool.run("--help")
        self.assertEqual(result.returncode, 0)
        for command in COMMANDS:
            self.assertIn(command, result.stdout)

    def test_version(self):
        result = tool.run("--version")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout, r"^tileglu \d+\.\d+\.\d+ \(.+\)\n$")


class MissingBackend(tool.ToolTest):
    """Exit code 3 and one sentence for what this machine does not have."""

    def test_gpu_backends(self):
        known = tool.backends()
        for backend in ("sm90", "cublas"):
            if known[backend]["available"]:
                continue
            with self.subTest(backend=backend):
                for command in ("verify", "bench"):
                    self.refused(command, *SHAPE, "--backend", backend, code=3, names=("--backend", backend))
                    self.refused(command, *SHAPE, "--backend", backend, "--json", code=3, names=(backend,))

    def test_gpu_contenders(self):
        if tool.backends()["cublas"]["available"]:
            self.skipTest("this machine has a GPU")
        self.refused("bench", *SHAPE, "--contenders", "cublas_merged", code=3, names=("cublas_merged",))
        self.refused("bench", *SHAPE, "--contenders", "interleave", code=3, names=("interleave",))

    def test_device(self):
        if not tool.backends()["cublas"]["available"]:
            self.skipTest("no GPU: every device is missing, which test_gpu_backends covers")
        self.refused("bench", *SHAPE, "--device", "77", code=3, names=("--device", "77"))


if __name__ == "__main__":
    unittest.main()
