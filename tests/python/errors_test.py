# SPDX-License-Identifier: Apache-2.0
"""Refusals: the kind of exception, a text that names what is wrong, and an untouched output."""

import subprocess
import sys

import numpy as np
import pytest

import expected
import tileglu


@pytest.fixture
def good():
    x, gate, up = expected.operands(7, 40, 64, "fp32")
    return {"x": x, "gate": gate, "up": up}


CASES = {
    "dtypes differ": ({"gate": np.zeros((40, 64), np.float16)}, "gate is fp16 and x is fp32"),
    "int weights": ({"up": np.zeros((40, 64), np.int32)}, "up has dtype int32"),
    "other byte order": ({"x": np.zeros((7, 64), ">f4")}, "x has dtype >f4"),
    "depths differ": ({"gate": np.zeros((40, 65), np.float32)}, "gate has k=65 columns, x has k=64"),
    "up of another shape": ({"up": np.zeros((41, 64), np.float32)}, r"up has shape \[41, 64\]"),
    "transposed weight": ({"gate": np.zeros((64, 40), np.float32).T}, "gate of shape .* has strides"),
    "expanded weight": ({"gate": np.broadcast_to(np.float32(1), (40, 64))}, "gate of shape .* has strides"),
    "weight of one dimension": ({"gate": np.zeros(64, np.float32)}, "gate has shape"),
    "unknown activation": ({"activation": "swish"}, "activation='swish' is none of silu, gelu_tanh"),
    "unknown backend": ({"backend": "gpu"}, "backend='gpu' is none of auto"),
    "unknown kernel": ({"kernel": "no_such"}, "no_such"),
    "not an array": ({"gate": "weights"}, "gate is a builtins.str"),
    "out of another shape": ({"out": np.zeros((7, 41), np.float32)}, r"out has shape \[7, 41\]"),
    "out expanded": (
        {"out": np.lib.stride_tricks.as_strided(np.zeros(40, np.float32), (7, 40), (0, 4))},
        "out of shape",
    ),
    "out read-only": ({"out": np.broadcast_to(np.float32(1), (7, 40))}, "out is read-only"),
    "stream of the wrong type": ({"stream": "0"}, "stream is a str"),
}


@pytest.mark.parametrize("name", CASES)
def test_refused(good, name):
    change, text = CASES[name]
    arguments = {"out": np.full((7, 40), 3, np.float32), **good, **change}
    out, before = arguments["out"], arguments["out"].copy()
    with pytest.raises((tileglu.InvalidArgument, tileglu.NotSupported), match=text) as caught:
        tileglu.glu(**arguments)
    assert np.array_equal(out, before)
    assert caught.value.status in (1, 2)
    assert isinstance(caught.value, tileglu.Error)


def test_the_library_speaks_for_itself(good):
    x = good["x"]
    with pytest.raises(tileglu.InvalidArgument, match="overlaps"):
        tileglu.glu(x[:, :40].copy(), good["gate"][:, :40], good["up"][:, :40], out=good["gate"][:7, :40])
    with pytest.raises(ValueError):
        tileglu.glu_merged(x, np.zeros((18, 64), np.float32), order="interleaved_8")
    with pytest.raises(tileglu.InvalidArgument, match="3 rows"):
        tileglu.glu_merged(x, np.zeros((3, 64), np.float32))
    with pytest.raises(tileglu.InvalidArgument, match="order='halves'"):
        tileglu.glu_merged(x, np.zeros((4, 64), np.float32), order="halves")
    with pytest.raises(tileglu.InvalidArgument, match="m=-1"):
        tileglu.plan(-1, 40, 64, memory="host")
    with pytest.raises(tileglu.InvalidArgument, match="64 bits"):
        tileglu.plan(2**70, 40, 64, memory="host")


def test_no_gpu_is_one_sentence():
    if tileglu.backends()["sm90"] is None:
        pytest.skip("this machine has a GPU")
    with pytest.raises(tileglu.NotAvailable, match="sm90") as caught:
        tileglu.plan(7, 40, 64, memory="cuda")
    assert caught.value.status == 3


def in_new_process(code, **environment):
    import os

    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)


def test_missing_library_names_what_was_tried():
    done = in_new_process("import tileglu; tileglu.version()", TILEGLU_LIBRARY="/no/such/libtileglu.so")
    assert (
        "LibraryNotFound" in done.stderr
        and "/no/such/libtileglu.so" in done.stderr
        and "TILEGLU_LIBRARY" in done.stderr
    )


def test_wrong_library_is_no_crash():
    done = in_new_process("import tileglu; tileglu.version()", TILEGLU_LIBRARY="libm.so.6")
    assert "LibraryNotFound" in done.stderr and "tileglu_version" in done.stderr


def test_library_of_another_version():
    code = "import tileglu._library as l; l.VERSION = (0, 99); l.library()"
    done = in_new_process(code)
    assert "this Python package needs 0.99" in done.stderr


def test_import_brings_no_framework():
    code = "import sys, tileglu; tileglu.version(); print({'torch', 'jax', 'cupy', 'numpy'} & set(sys.modules))"
    assert in_new_process(code).stdout.strip() == "set()"


def test_flags_reach_the_library():
    possible, reason = tileglu.can_implement(7, 40, 64, memory="host", batch_invariant=True)
    assert not possible and "TILEGLU_BATCH_INVARIANT" in reason
    assert tileglu.plan(7, 40, 64, memory="host", prefetch_weights=True).backend == "cpu"
