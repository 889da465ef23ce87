# SPDX-License-Identifier: Apache-2.0
"""Finds the package beside the tests unless an installed one is asked for (TILEGLU_INSTALLED=1), skips GPU tests
without a Hopper GPU, and ends with one line for each reason why something was skipped (-ra)."""

import importlib
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
if not os.environ.get("TILEGLU_INSTALLED"):
    sys.path.insert(0, str(ROOT / "python"))


def pytest_collection_modifyitems(items):
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked and not _has_hopper():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="needs a Hopper GPU"))


def _has_hopper():
    import tileglu

    return tileglu.can_implement(64, 64, 64, backend="sm90")[0]


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="module")
def script():
    """Imports a module of scripts/ by its name."""
    sys.path.insert(0, str(ROOT / "scripts"))
    yield importlib.import_module
    sys.path.remove(str(ROOT / "scripts"))
