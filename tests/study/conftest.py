# SPDX-License-Identifier: Apache-2.0
"""The study's package and tileglu's, from the source tree."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

from study import locate  # noqa: E402

locate.prepare()
