# SPDX-License-Identifier: Apache-2.0
"""Real layers for the numerics: gate and up weights of a checkpoint in safetensors format, with the inputs that ./dev
demo keeps beside it (scripts/prepare_smollm2.py). `python3 -m study layers` copies a few of them into a small folder,
for a machine that the whole checkpoint need not go to."""

import json
import math
import struct
from pathlib import Path

import numpy

MODEL, INPUTS = "model.safetensors", "inputs.safetensors"
PREFIX = "model.layers.{}.mlp."


def header_of(path):
    """({name: entry}, where the data begin)."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        entries = json.loads(file.read(length))
    entries.pop("__metadata__", None)
    return entries, 8 + length


def read_bytes(path, names):
    """{name: (shape, bytes)} of bf16 tensors."""
    entries, start = header_of(path)
    found = {}
    with open(path, "rb") as file:
        for name in names:
            entry = entries[name]
            if entry["dtype"] != "BF16":
                raise ValueError(f"{path}: {name} is {entry['dtype']}; only BF16 is read here")
            first, last = entry["data_offsets"]
            file.seek(start + first)
            found[name] = entry["shape"], file.read(last - first)
    return found


def read(path, names):
    """fp32 arrays of bf16 tensors."""
    arrays = []
    for shape, data in read_bytes(path, names).values():
        wide = numpy.frombuffer(data, dtype="<u2").astype(numpy.uint32) << 16
        assert wide.size == math.prod(shape)
        arrays.append(wide.view(numpy.float32).reshape(shape))
    return arrays


def available(folder):
    """Numbers of the layers that have weights and an input."""
    weights, inputs = header_of(Path(folder) / MODEL)[0], header_of(Path(folder) / INPUTS)[0]
    return [
        n for n in range(len(weights)) if f"layers.{n}.x" in inputs and PREFIX.format(n) + "gate_proj.weight" in weights
    ]


def names_of(layer):
    return [PREFIX.format(layer) + "gate_proj.weight", PREFIX.format(layer) + "up_proj.weight"], [f"layers.{layer}.x"]


def load(folder, layer):
    """fp32 (x [m,k], weights [2n,k])."""
    weights, inputs = names_of(layer)
    (x,) = read(Path(folder) / INPUTS, inputs)
    return x, numpy.concatenate(read(Path(folder) / MODEL, weights))


def chosen(folder, count=3):
    """First, middle, last, ..."""
    layers = available(folder)
    return sorted({layers[round(i * (len(layers) - 1) / max(1, count - 1))] for i in range(count)}) if layers else []


def extract(folder, target):
    """The chosen layers into a folder of the same form."""
    target = Path(target)
    target.mkdir(parents=True, exist_ok=True)
    weights, inputs = [], []
    for layer in chosen(folder):
        of_weights, of_inputs = names_of(layer)
        weights += of_weights
        inputs += of_inputs
    for name, names in ((MODEL, weights), (INPUTS, inputs)):
        write(target / name, read_bytes(Path(folder) / name, names))


def write(path, tensors):
    entries, at = {}, 0
    for name, (shape, data) in tensors.items():
        entries[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    header = json.dumps(entries).encode()
    header += b" " * (-len(header) % 8)
    temporary = path.with_name(f".{path.name}.new")
    with open(temporary, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.writelines(data for _, data in tensors.values())
    temporary.replace(path)
