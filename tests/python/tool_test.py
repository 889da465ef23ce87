# SPDX-License-Identifier: Apache-2.0
"""models(), verify() and the console script, on the tool that TILEGLU_TOOL or the wheel gives."""

import subprocess
import sys

import pytest

import tileglu
from tileglu import _tool


@pytest.fixture(scope="module", autouse=True)
def tool():
    try:
        return _tool.path()
    except tileglu.NotAvailable as error:
        pytest.skip(str(error))


def test_models():
    shapes = {row["model"]: (row["n"], row["k"]) for row in tileglu.models()}
    assert shapes["qwen2.5-0.5b"] == (4864, 896)


def test_verify():
    passed, document = tileglu.verify(backend="cpu", m=3, n=40, k=64)
    assert passed and document["command"] == "verify" and document["rows"]


def test_wrong_arguments_are_the_tools_own_words():
    with pytest.raises(tileglu.InvalidArgument, match="mish"):
        tileglu.verify(activation="mish")


def test_missing_device():
    if tileglu.backends()["sm90"] is None:
        pytest.skip("this machine has a GPU")
    with pytest.raises(tileglu.NotAvailable):
        tileglu.verify(backend="sm90")


def test_console_script_is_the_tool(tool, monkeypatch):
    monkeypatch.setenv(_tool.ENVIRONMENT, tool)
    code = f"import sys; sys.path[:0] = {sys.path!r}; import tileglu._tool as t; sys.argv[1:] = ['--version']; t.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and tileglu.version() in done.stdout


def test_a_tool_that_is_none(monkeypatch):
    monkeypatch.setenv(_tool.ENVIRONMENT, "/no/such/tileglu")
    with pytest.raises(tileglu.NotAvailable, match="/no/such/tileglu"):
        tileglu.models()
