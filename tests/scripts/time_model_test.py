# SPDX-License-Identifier: Apache-2.0
"""The time model of scripts/ is that of the planner.  time_model_test.py TILEGLU_PREDICTIONS"""

import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import time_model  # noqa: E402

SHAPES = (
    (1, 4864, 896), (2, 16000, 576), (7, 2824, 888), (16, 3584, 4096), (57, 480, 7616), (132, 2736, 5056), (300, 712, 640),
    (512, 13824, 5120), (829, 27904, 936), (1400, 6200, 1616), (2048, 8960, 1536), (4307, 8920, 3208), (16384, 29568, 8192),
)  # fmt: skip
MOST_DECODE_TOKENS = int(time_model.constant("time_model.cpp", "kMostDecodeTokens"))


class TimeModel(unittest.TestCase):
    def test_predicts_what_the_planner_does(self):
        shapes = [",".join(map(str, shape)) for shape in SHAPES]
        done = subprocess.run([PREDICTIONS, *shapes], capture_output=True, text=True, check=True)
        numbers, compared = time_model.written(), 0
        for line in done.stdout.splitlines():
            kernel, *shape, us = line.split()
            m, n, k = map(int, shape)
            if kernel not in numbers or (kernel.startswith("decode") and m > MOST_DECODE_TOKENS):
                continue  # not measured: the planner puts it last
            with self.subTest(line=line):
                self.assertAlmostEqual(time_model.predict(kernel, m, n, k, numbers[kernel]) / float(us), 1, delta=1e-6)
            compared += 1
        self.assertGreater(compared, 30 * len(SHAPES))


if __name__ == "__main__":
    PREDICTIONS = sys.argv.pop(1)
    unittest.main()
