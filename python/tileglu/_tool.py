# SPDX-License-Identifier: Apache-2.0
"""The command-line tool that the wheel brings along, for the console script `tileglu`, models() and verify()."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from ._errors import Error, InvalidArgument, NotAvailable

ENVIRONMENT = "TILEGLU_TOOL"


def path():
    """The tool's path: TILEGLU_TOOL, the package's own, or the one on PATH. NotAvailable if there is none.

    The console script has the tool's name, so a script on PATH is passed over.
    """
    chosen = os.environ.get(ENVIRONMENT)
    bundled = Path(__file__).parent / "_bin" / "tileglu"
    for candidate in [chosen] if chosen else [str(bundled), shutil.which("tileglu")]:
        if candidate and os.access(candidate, os.X_OK) and _is_binary(candidate):
            return candidate
    raise NotAvailable(f"no tool: {chosen or bundled} is no executable; set {ENVIRONMENT} to the path of tileglu")


def _is_binary(candidate):
    try:
        with open(candidate, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def document(*arguments):
    """Runs the tool with --json and returns (exit code, document). InvalidArgument for wrong arguments."""
    done = subprocess.run([path(), *arguments, "--json"], capture_output=True, text=True, check=False)
    if done.returncode == 2:
        raise InvalidArgument(done.stderr.strip())
    if done.returncode == 3:
        raise NotAvailable(done.stderr.strip())
    try:
        return done.returncode, json.loads(done.stdout)
    except json.JSONDecodeError:
        raise Error(f"the tool ended with code {done.returncode} and no document: {done.stderr.strip()}") from None


def main():
    """The console script: becomes the tool."""
    try:
        tool = path()
    except NotAvailable as error:
        sys.exit(f"tileglu: {error}")
    os.environ.setdefault("TILEGLU_PYTHON", sys.executable)  # for `tileglu report`
    os.execv(tool, [tool, *sys.argv[1:]])
