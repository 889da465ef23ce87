# SPDX-License-Identifier: Apache-2.0
"""The bar on standard error: what is running, how much is done, how long it will still take."""

import sys
import time

WIDTH = 24


class Progress:
    """Estimates come from the units' own; the ratio of real to estimated time so far corrects them."""

    def __init__(self, total_seconds, stream=None):
        self.total = total_seconds
        self.done = 0.0  # estimated seconds of finished units
        self.started = time.monotonic()
        self.stream = sys.stderr if stream is None else stream
        self.live = self.stream.isatty()

    @property
    def elapsed(self):
        return time.monotonic() - self.started

    def pace(self):
        return self.elapsed / self.done if self.done > 0 else 1.0

    def eta(self):
        return (self.total - self.done) * self.pace()

    def show(self, what):
        share = min(1.0, self.done / self.total) if self.total > 0 else 1.0
        bar = "#" * round(share * WIDTH)
        line = f"[{bar:<{WIDTH}}] {share:4.0%}  {clock(self.elapsed)} gone, {clock(self.eta())} to go  {what}"
        self.stream.write(f"\r\x1b[2K{line}" if self.live else line + "\n")
        self.stream.flush()

    def finish(self):
        if self.live:
            self.stream.write("\r\x1b[2K")
            self.stream.flush()


def clock(seconds):
    seconds = max(0, round(seconds))
    return f"{seconds // 60}:{seconds % 60:02}"
