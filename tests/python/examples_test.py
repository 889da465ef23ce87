# SPDX-License-Identifier: Apache-2.0
"""Every script in examples/python runs to its end."""

import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tileglu

FOLDER = Path(__file__).resolve().parents[2] / "examples/python"
NEEDS = {
    "numpy_glu.py": ["ml_dtypes"],
    "torch_glu.py": ["torch"],
    "jax_glu.py": ["jax"],
    "cupy_glu.py": ["cupy"],
    "transformers_patch.py": ["torch", "transformers"],
}


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.py")))
def test_runs(name):
    for package in NEEDS[name]:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    if "jax" in NEEDS[name]:
        try:
            importlib.import_module("tileglu.jax")
        except tileglu.LibraryNotFound as error:
            pytest.skip(str(error))
    backend = {"cupy_glu.py": "cublas", "numpy_glu.py": "cpu"}.get(name)
    if backend and tileglu.backends()[backend] is not None:
        pytest.skip(tileglu.backends()[backend])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, FOLDER / name], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
