# SPDX-License-Identifier: Apache-2.0
"""Finds the package tileglu, its library and its tool: those of the source tree around this package, if there is one
and nothing else is asked for, else whatever is installed."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILDS = ("build", "build-cpu")


def prepare():
    """Call before the first `import tileglu`."""
    if not (ROOT / "python" / "tileglu").is_dir():
        return
    sys.path.insert(0, str(ROOT / "python"))
    for build in BUILDS:
        folder = ROOT / build / "bin"
        library, tool = folder / "libtileglu.so.0", folder / "tileglu"
        if library.exists() and tool.exists():
            os.environ.setdefault("TILEGLU_LIBRARY", str(library))
            os.environ.setdefault("TILEGLU_TOOL", str(tool))
            return
