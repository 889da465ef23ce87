# SPDX-License-Identifier: Apache-2.0
"""The wheel in fresh environments, one without torch and one with it. Needs no network: what a fresh environment is to see of
NumPy, ml_dtypes and torch is linked from the environment that runs this test.

    TILEGLU_WHEEL=dist/tileglu-….whl python -m pytest tests/install/wheel_test.py
"""

import importlib.util
import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

WHEEL = os.environ.get("TILEGLU_WHEEL")
pytestmark = pytest.mark.skipif(not WHEEL, reason="no wheel: ./dev wheel builds one and runs this test on it")
CLEAN = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "TILEGLU_LIBRARY", "TILEGLU_TOOL")}


def run(*command, code=0):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=CLEAN, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout.strip()


def site_of(package):
    """The folder that holds a package of this interpreter; the test is skipped if there is none."""
    found = importlib.util.find_spec(package)
    if found is None:
        pytest.skip(f"{package} is not installed")
    return Path(found.origin).parents[1]


def fresh(folder, sees):
    """A new environment with the wheel, which sees the folder `sees` too; its python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin/python"
    run(python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--disable-pip-version-check", Path(WHEEL).resolve())
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    Path(site, "test-links.pth").write_text(f"{sees}\n")
    return python


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """An environment with NumPy and ml_dtypes only."""
    links = tmp_path_factory.mktemp("links")
    for package in ("numpy", "ml_dtypes"):
        for path in site_of(package).glob(f"{package}*"):
            (links / path.name).symlink_to(path)
    return fresh(tmp_path_factory.mktemp("plain"), links)


def test_what_the_wheel_holds():
    assert WHEEL.endswith("-py3-none-linux_x86_64.whl")
    with zipfile.ZipFile(WHEEL) as wheel:
        names = wheel.namelist()
        metadata = wheel.read(next(n for n in names if n.endswith("METADATA"))).decode()
    assert all(n.startswith(("tileglu/", "tileglu_study/", "tileglu-")) for n in names)
    for part in ("_lib/libtileglu.so.0", "_bin/tileglu", "py.typed", "_experts.py", "transformers.py"):
        assert f"tileglu/{part}" in names
    assert "tileglu_study/__init__.py" in names
    assert not [n for n in names if n.endswith((".h", ".hpp", ".cmake", ".pyc", ".a"))]
    required = [line for line in metadata.splitlines() if line.startswith("Requires-Dist") and "extra ==" not in line]
    assert not required, "a hard dependency"


USE = """
import sys, numpy, ml_dtypes, tileglu
from tileglu import _library
assert _library.path().startswith(sys.prefix), _library.path()
x = numpy.ones((3, 64), ml_dtypes.bfloat16)
y = tileglu.glu(x, numpy.ones((40, 64), x.dtype), numpy.ones((40, 64), x.dtype))
assert (y == 4096).all() and tileglu.__version__ in tileglu.build_info()
weights = numpy.ones((40, 64), x.dtype), numpy.ones((40, 64), x.dtype)
y = tileglu.glu(x, *weights, "swiglu", limit=4, bias_up=-62 * numpy.ones(40, x.dtype))
assert (abs(y.astype("f4") - 4 * 2 / (1 + numpy.exp(-4.0))) < 0.04).all(), y
assert any(row["model"] == "qwen2.5-7b" for row in tileglu.models())
try:
    import tileglu.torch
except ModuleNotFoundError as error:
    print("without", error.name)
"""


def test_without_torch(plain):
    assert run(plain, "-c", USE) == "without torch"
    assert "No broken requirements" in run(plain, "-m", "pip", "check")


def test_console_command(plain):
    tool = plain.parent / "tileglu"
    assert run(plain, "-c", "import tileglu; print(tileglu.version())") in run(tool, "--version")
    assert json.loads(run(tool, "models", "--json"))["rows"]
    verified = json.loads(run(tool, "verify", "--backend=cpu", "--m=4", "--n=48", "--k=64", "--json"))
    assert verified["rows"]
    run(tool, "verify", "--m=-1", code=2)


WITH_TORCH = """
import torch, tileglu, tileglu.torch
x, gate, up = (torch.randn(shape).bfloat16() for shape in ((3, 64), (40, 64), (40, 64)))
exact = torch.nn.functional.silu(x.double() @ gate.double().T) * (x.double() @ up.double().T)
found = torch.ops.tileglu.glu(x, gate, up)
assert torch.equal(found, tileglu.glu(x, gate, up))
bias = torch.randn(40).bfloat16().requires_grad_()
tileglu.glu(x, gate, up, bias_gate=bias).sum().backward()
assert bias.grad.abs().sum() > 0
assert (found.double() - exact).norm() < 0.004 * exact.norm()
print("torch", torch.__version__)
"""


def test_with_torch(tmp_path):
    python = fresh(tmp_path, site_of("torch"))
    assert run(python, "-c", WITH_TORCH).startswith("torch ")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q", "-p", "no:cacheprovider"]))
