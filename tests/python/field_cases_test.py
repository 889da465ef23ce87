# SPDX-License-Identifier: Apache-2.0
"""Reports from other projects, as values: docs/field-cases.md says which test stands for which. NumPy, and processes of
their own; what needs torch is in field_cases_torch_test.py."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

import expected
import tileglu
from tileglu import _library, _tool

GLIBC, GLIBCXX = (2, 35), (3, 4, 29)  # what docs/python.md says that the libraries need at most


def in_a_process(code, **environment):
    """stdout of Python code that finds the package as this process does."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), _library.ENVIRONMENT: _library.path(), **environment}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=variables, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("order", tileglu.MERGED_ORDERS)
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_c23_shards_of_stacked_weights_give_what_one_rank_gives(order, ranks):
    x, gate, up = expected.operands(3, 128, 32, "fp32")
    n = 128 // ranks
    shards = [(w[rank * n : (rank + 1) * n]) for w in (gate, up) for rank in range(ranks)]
    parts = [
        tileglu.glu_merged(x, expected.merged(shards[rank], shards[ranks + rank], order), order=order)
        for rank in range(ranks)
    ]
    expected.check(np.concatenate(parts, axis=1), x, gate, up)
    by_views = [tileglu.glu(x, shards[rank], shards[ranks + rank]) for rank in range(ranks)]
    assert np.array_equal(np.concatenate(by_views, axis=1), np.concatenate(parts, axis=1))


def test_c23_the_order_of_merged_weights_is_stated():
    x, gate, up = expected.operands(3, 16, 32, "fp32")
    with pytest.raises(tileglu.InvalidArgument, match="order='separate' is none of gate_up, up_gate"):
        tileglu.glu_merged(x, np.concatenate([gate, up]), order="separate")


@pytest.mark.parametrize("n", [2368, 3696, 1376, 1712, 856, 1848])
@pytest.mark.parametrize("m", [1, 17, 130])
def test_c25_awkward_shard_widths(m, n):
    x, gate, up = expected.operands(m, n, 256, "bf16")
    y = tileglu.glu(x, gate, up)
    assert y.shape == (m, n) and y.flags.c_contiguous
    expected.check(y, x, gate, up)


@pytest.mark.parametrize("gate, up, wanted", [(1, 2, 1.46212), (-3, 5, -0.71139)])
def test_c26_which_half_is_the_gate(gate, up, wanted):
    x, g, u = (np.array([[value]], np.float32) for value in (1, gate, up))
    found = [tileglu.glu(x, g, u)] + [
        tileglu.glu_merged(x, expected.merged(g, u, order), order=order) for order in ("gate_up", "up_gate", "interleaved_1")
    ]
    assert [float(y[0, 0]) for y in found] == pytest.approx([wanted] * 4, abs=1e-5)


def test_c27_one_result_whatever_the_layout():
    x, gate, up = (np.array(rows, np.float32) for rows in ([[1]], [[1], [2], [3], [4]], [[10], [20], [30], [40]]))
    wanted = tileglu.glu(x, gate, up)
    assert wanted[0] == pytest.approx([7.31059, 35.23188, 85.73167, 157.12221], rel=1e-5)
    for order in ("gate_up", "up_gate", "interleaved_1"):
        assert np.array_equal(tileglu.glu_merged(x, expected.merged(gate, up, order), order=order), wanted)
    with pytest.raises(tileglu.InvalidArgument, match="n=4 is not a multiple of 8"):
        tileglu.glu_merged(x, np.concatenate([gate, up]), order="interleaved_8")


WITHOUT_A_GPU = """
import numpy as np, tileglu
y = tileglu.glu(np.ones((3, 64), np.float32), np.ones((40, 64), np.float32), np.ones((40, 64), np.float32))
assert y.shape == (3, 40) and abs(y[0, 0] - 4096) < 1e-2
assert "libcuda.so" not in open("/proc/self/maps").read(), "libcuda was opened"
print(tileglu.version())
"""


def test_c33_the_cpu_functions_need_no_driver():
    assert in_a_process(WITHOUT_A_GPU, CUDA_VISIBLE_DEVICES="").strip() == tileglu.version()


def test_c33_asking_for_a_gpu_says_in_one_sentence_what_is_missing():
    code = "import tileglu; print(tileglu.can_implement(64, 64, 64, backend='sm90'))"
    possible, reason = eval(in_a_process(code, CUDA_VISIBLE_DEVICES=""))
    assert not possible and re.search(r"driver|device|no CUDA", reason) and "\n" not in reason


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_c33_the_tool_starts_without_a_gpu(argument):
    try:
        tool = _tool.path()
    except tileglu.NotAvailable as error:
        pytest.skip(str(error))
    done = subprocess.run([tool, argument], capture_output=True, text=True, check=False,
                          env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})  # fmt: skip
    assert done.returncode == 0 and done.stdout


def libraries():
    folder = os.path.dirname(os.path.realpath(_library.path()))
    return sorted(os.path.join(folder, name) for name in os.listdir(folder) if re.fullmatch(r"libtileglu\w*\.so(\.\d+)?", name))


def readelf(option, path):
    try:
        return subprocess.run(["readelf", option, path], capture_output=True, text=True, check=True).stdout
    except FileNotFoundError:
        pytest.skip("readelf is not installed")


def test_c34_no_library_depends_on_torch_python_or_the_driver():
    assert libraries()
    for path in libraries():
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", path))
        assert needed and not [name for name in needed if re.search("torch|c10|python|cuda|cublas|jax|xla", name)], path


def test_c34_the_package_works_where_torch_cannot_be_imported():
    code = "import sys; sys.modules['torch'] = None\n" + WITHOUT_A_GPU
    assert in_a_process(code).strip() == tileglu.version()


def test_c35_glibc_and_libstdcxx_floor():
    for path in libraries():
        text = readelf("-V", path)
        for prefix, floor in (("GLIBC", GLIBC), ("GLIBCXX", GLIBCXX)):
            found = [tuple(map(int, v.split("."))) for v in re.findall(rf"\b{prefix}_(\d[\d.]*)", text)]
            assert max(found, default=floor) <= floor, f"{path} needs {prefix} {max(found)}"
