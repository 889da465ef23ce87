# SPDX-License-Identifier: Apache-2.0
"""docs/python-api.md says what the docstrings say, and every public name has one."""

import subprocess
import sys

import tileglu


def test_up_to_date(root):
    done = subprocess.run([sys.executable, root / "scripts/python_reference.py", "--check"], check=False)
    assert done.returncode == 0


def test_complete(root):
    page = (root / "docs/python-api.md").read_text()
    for name in tileglu.__all__:
        if callable(getattr(tileglu, name)):
            assert f"tileglu.{name}" in page, f"{name} has no docstring"


def test_the_package_says_that_it_is_typed(root):
    assert (root / "python/tileglu/py.typed").exists()
