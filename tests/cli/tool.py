# SPDX-License-Identifier: Apache-2.0
"""What the command-line tests share: running the tool, tiny tensor files in plain Python, and the expected values."""
import ast
import json
import math
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest

TOOL = os.environ["TILEGLU_TOOL"]
FORMATS = {"F32": "f", "F16": "e", "BF16": "H"}


def run(*arguments, **keywords):
    """Runs the tool; stdout and stderr as text."""
    keywords.setdefault("stdin", subprocess.DEVNULL)
    keywords.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([TOOL, *map(str, arguments)], stderr=subprocess.PIPE, text=True, timeout=300, check=False,
                          **keywords)


def backends():
    return {row["backend"]: row for row in json.loads(run("info", "--json").stdout)["backends"]}


def need_backend(name):
    """Decorator: skips the test where this backend is not available."""
    row = backends()[name]
    return unittest.skipUnless(row["available"], f"backend {name}: {row['reason']}")


class ToolTest(unittest.TestCase):
    """A test case with a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tileglu-cli-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def refused(self, *arguments, code=2, names=(), **keywords):
        """The tool must stop with this code, one line on stderr that holds all of `names`, and nothing on stdout."""
        result = run(*arguments, **keywords)
        context = f"{arguments}\nstdout: {result.stdout}\nstderr: {result.stderr}"
        self.assertEqual(result.returncode, code, context)
        self.assertEqual(result.stderr.count("\n"), 1, context)
        self.assertTrue(result.stderr.startswith("tileglu"), context)
        self.assertIn(result.stdout, (None, ""), context)
        for name in names:
            self.assertIn(str(name), result.stderr, context)
        for noise in ("terminate called", "what():", "Segmentation", "Assertion"):
            self.assertNotIn(noise, result.stderr, context)
        return result

    def document(self, *arguments, code=0):
        """The JSON document that a command prints."""
        result = run(*arguments, "--json")
        self.assertEqual(result.returncode, code, f"{arguments}\n{result.stdout}\n{result.stderr}")
        document = json.loads(result.stdout, parse_constant=lambda word: self.fail(f"{word} is not JSON"))
        self.assertEqual(document["schema_version"], 1)
        self.assertEqual(document["command"], arguments[0])
        return document

    def files(self):
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())


# --- numbers ---------------------------------------------------------------------------------------------------------

def to_bf16(value):
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


def from_bf16(bits):
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


def rounded(value, dtype):
    """The value once rounded to the dtype."""
    if dtype == "BF16":
        return from_bf16(to_bf16(value))
    return struct.unpack("<" + FORMATS[dtype], struct.pack("<" + FORMATS[dtype], value))[0]


def encode(values, dtype):
    if dtype == "BF16":
        values = [to_bf16(value) for value in values]
    return struct.pack(f"<{len(values)}{FORMATS[dtype]}", *values)


def decode(data, dtype):
    values = struct.unpack(f"<{len(data) // struct.calcsize(FORMATS[dtype])}{FORMATS[dtype]}", data)
    return [from_bf16(bits) for bits in values] if dtype == "BF16" else list(values)


def silu(g):
    return g / (1 + math.exp(-g))


def gelu_tanh(g):
    return 0.5 * g * (1 + math.tanh(math.sqrt(2 / math.pi) * (g + 0.044715 * g**3)))


def gelu_erf(g):
    return 0.5 * g * (1 + math.erf(g / math.sqrt(2)))


def gated(a, gate, up, act=silu):
    """act(A Wgate^T) * (A Wup^T), rows as lists, in double."""
    def dot(x, y):
        return math.fsum(p * q for p, q in zip(x, y))
    return [[act(dot(row, g)) * dot(row, u) for g, u in zip(gate, up)] for row in a]


def matrix(rows, columns, seed):
    """Small multiples of 1/8, asymmetric, exact in every dtype."""
    return [[((seed * 7919 + i * 131 + j * 37 + i * j * 11) % 29 - 13) / 8 for j in range(columns)]
            for i in range(rows)]


# --- files -----------------------------------------------------------------------------------------------------------

def flat(rows):
    return [value for row in rows for value in row]


def tensor_bytes(tensors, metadata=None):
    """A safetensors file of {name: (dtype, rows)}."""
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, rows) in tensors.items():
        content = encode(flat(rows), dtype)
        header[name] = {"dtype": dtype, "shape": [len(rows), len(rows[0])],
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def write_tensors(path, tensors, metadata=None):
    path.write_bytes(tensor_bytes(tensors, metadata))
    return path


def read_tensors(path):
    """{name: (dtype, shape, values)} and the metadata."""
    content = pathlib.Path(path).read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + length])
    metadata = header.pop("__metadata__", {})
    data = content[8 + length:]
    return {name: (entry["dtype"], entry["shape"], decode(data[slice(*entry["data_offsets"])], entry["dtype"]))
            for name, entry in header.items()}, metadata


def write_npy(path, rows, code="<f4"):
    header = f"{{'descr': '{code}', 'fortran_order': False, 'shape': ({len(rows)}, {len(rows[0])}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                     encode(flat(rows), {"<f4": "F32", "<f2": "F16"}[code]))
    return path


def read_npy(path):
    """Dtype code and values."""
    content = pathlib.Path(path).read_bytes()
    length = struct.unpack("<H", content[8:10])[0]
    header = ast.literal_eval(content[10:10 + length].decode())
    return header["descr"], header["shape"], decode(content[10 + length:], {"<f4": "F32", "<f2": "F16"}[header["descr"]])


# How each family names the weights of layer L (and expert E): (tensors, extra arguments of `run`).
def separate(gate, up, layer=0):
    prefix = f"model.layers.{layer}.mlp."
    return {prefix + "gate_proj.weight": gate, prefix + "up_proj.weight": up}


def checkpoint_of(scheme, dtype, gate, up):
    """{name: (dtype, rows)} of a one-layer checkpoint in the naming scheme, and what `run` needs besides --layer 0."""
    g, u = (dtype, gate), (dtype, up)
    if scheme == "llama":
        return separate(g, u), []
    if scheme == "language_model":
        return {"language_model." + name: value for name, value in separate(g, u).items()}, []
    if scheme == "mistral":
        return {"layers.0.feed_forward.w1.weight": g, "layers.0.feed_forward.w3.weight": u}, []
    if scheme == "phi":
        return {"model.layers.0.mlp.gate_up_proj.weight": (dtype, gate + up)}, []
    if scheme == "mixtral":
        prefix = "model.layers.0.block_sparse_moe.experts."
        other = (dtype, [[9.0] * len(row) for row in gate])
        return {prefix + "0.w1.weight": other, prefix + "0.w3.weight": other,
                prefix + "1.w1.weight": g, prefix + "1.w3.weight": u}, ["--expert", "1"]
    if scheme == "qwen_moe":
        prefix = "model.layers.0.mlp.experts.0."
        return {prefix + "gate_proj.weight": g, prefix + "up_proj.weight": u}, ["--expert", "0"]
    raise ValueError(scheme)


SCHEMES = ("llama", "language_model", "mistral", "phi", "mixtral", "qwen_moe")
PACKED_LAYOUTS = ("gate_up", "up_gate", "interleaved_1", "interleaved_8")
