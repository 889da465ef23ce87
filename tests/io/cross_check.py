# SPDX-License-Identifier: Apache-2.0
"""Other side of python_test.cpp: reads what C++ wrote, writes what C++ reads, and judges files.

    cross_check.py probe             exit 0 if the packages are here
    cross_check.py read FOLDER       compares the files that C++ wrote with pattern()
    cross_check.py write FOLDER      writes the same contents with safetensors and numpy
    cross_check.py judge FILE...     one line a file: "accepted" or "refused"
    cross_check.py prepare SCRIPT FOLDER    what prepare_smollm2.py --synthetic writes, with two layers only
"""

import importlib.util
import os
import sys

import ml_dtypes
import numpy as np
import safetensors.numpy

CONTENTS = {"half": (np.float16, (3, 5), 1), "brain": (ml_dtypes.bfloat16, (2, 7), 2), "full": (np.float32, (4, 2), 3)}


def pattern(dtype, shape, seed):
    """pattern() of files.cpp."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize // 2
    state = (seed * 2654435761 + 1) % 2**32
    values = []
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        values.append(state >> 16)
    return np.array(values, np.uint16).view(dtype).reshape(shape)


def contents():
    return {name: pattern(*what) for name, what in CONTENTS.items()}


def bits(array):
    return array.tobytes(), array.shape


def read(folder):
    expected = contents()
    found = safetensors.numpy.load_file(f"{folder}/all.safetensors")
    assert sorted(found) == sorted(expected), sorted(found)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype, (name, found[name].dtype)
        assert bits(found[name]) == bits(array), name
    with safetensors.safe_open(f"{folder}/all.safetensors", "np") as file:
        assert file.metadata() == {"source": "c++"}, file.metadata()
    for name in ("half", "full"):
        array = np.load(f"{folder}/{name}.npy")
        assert array.dtype == expected[name].dtype and array.flags.c_contiguous, name
        assert bits(array) == bits(expected[name]), name


def write(folder):
    arrays = contents()
    safetensors.numpy.save_file(arrays, f"{folder}/all.safetensors", {"source": "python"})
    for name, array in arrays.items():
        np.save(f"{folder}/{name}.npy", array)
    np.save(f"{folder}/brain_again.npy", np.load(f"{folder}/brain.npy"))  # dtype |V2
    for version in (1, 2, 3):
        with open(f"{folder}/version{version}.npy", "wb") as file:
            np.lib.format.write_array(file, arrays["full"], version=(version, 0))


def judge(paths):
    for path in paths:
        try:
            with safetensors.safe_open(path, "np"):  # the header only: numpy lacks some of the dtypes
                print("accepted")
        except safetensors.SafetensorError:
            print("refused")


def prepare(script, folder):
    spec = importlib.util.spec_from_file_location("prepare_smollm2", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.LAYERS = 2
    sys.argv = [script, folder, "--synthetic"]
    times = []
    for _ in range(2):
        assert module.main() == 0
        names = sorted(os.listdir(folder))
        assert names == ["config.json", "inputs.safetensors", "model.safetensors"], names
        times.append([os.stat(f"{folder}/{name}").st_mtime_ns for name in names])
    assert times[0] == times[1], "a complete folder is left alone"
    os.truncate(f"{folder}/model.safetensors", 1000)
    assert module.main() == 0
    assert os.path.getsize(f"{folder}/model.safetensors") > 1000, "a cut file is written again"
    weights = safetensors.numpy.load_file(f"{folder}/model.safetensors")["model.layers.1.mlp.up_proj.weight"]
    assert abs(weights.astype(np.float32).std() * 576**0.5 - 1) < 0.01, "standard deviation"
    text_and_tokens = (" low lower", ["l", "o", "w", "er", "\u0120", "\u0120low", "\u0120lo", "lo"])
    assert module.encode(*text_and_tokens, ["l o", "\u0120 lo", "e r", "\u0120lo w"]) == [5, 5, 3], "byte-pair encoding"


if __name__ == "__main__":
    command, arguments = sys.argv[1], sys.argv[2:]
    if command == "judge":
        judge(arguments)
    elif command != "probe":
        {"read": read, "write": write, "prepare": prepare}[command](*arguments)
