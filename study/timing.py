# SPDX-License-Identifier: Apache-2.0
"""Timing of several contenders against each other: after a common warm-up each round takes one sample of every one of
them in random order, so that what drifts (clock, temperature) hits all alike and none always follows the same one (what
draws less power leaves its successor a higher clock)."""

import math
import random
import time
from dataclasses import dataclass

from . import stats

GRAPH_BELOW_US = 1500  # calls shorter than this are also timed as a CUDA graph
MOST_CALLS = 256


@dataclass(frozen=True)
class Settings:
    samples: int = 15
    sample_us: float = 2000  # least time between the two events of a sample
    warmup_s: float = 0.1


class HostRunner:
    """Monotonic clock around single calls."""

    launch = "host"

    def __init__(self, call, sets, calls):
        self.call, self.sets, self.calls = call, sets, calls
        self.next = 0

    def sample_us(self):
        started = time.perf_counter()
        for _ in range(self.calls):
            self.call(self.next)
            self.next = (self.next + 1) % self.sets
        return (time.perf_counter() - started) / self.calls * 1e6


class StreamRunner:
    """CUDA events around calls that the host issues one by one: what a program without graphs sees."""

    launch = "stream"

    def __init__(self, torch, call, sets, calls):
        self.torch, self.call, self.sets, self.calls = torch, call, sets, calls
        self.next = 0
        self.events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]

    def enqueue(self):
        for _ in range(self.calls):
            self.call(self.next)
            self.next = (self.next + 1) % self.sets

    def sample_us(self):
        self.torch.cuda.synchronize()
        self.events[0].record()
        self.enqueue()
        self.events[1].record()
        self.events[1].synchronize()
        return self.events[0].elapsed_time(self.events[1]) / self.calls * 1e3


class GraphRunner(StreamRunner):
    """The same calls captured once: launches cost next to nothing, so the kernels alone are seen."""

    launch = "graph"

    def __init__(self, torch, call, sets, calls):
        super().__init__(torch, call, sets, calls)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            super().enqueue()

    def enqueue(self):
        self.graph.replay()


def first_estimate_us(arrays, call, sets):
    """Of one call, after every set was used once (which also runs what is compiled or tuned at a first call)."""
    for index in range(sets):
        call(index)
    arrays.synchronize()
    runner = _runner(arrays, call, sets, 3, "stream")
    return min(runner.sample_us() for _ in range(2))


def _runner(arrays, call, sets, calls, launch):
    if arrays.memory == "host":
        return HostRunner(call, sets, calls)
    return (GraphRunner if launch == "graph" else StreamRunner)(arrays.torch, call, sets, calls)


def make_runner(arrays, call, sets, estimate_us, launch, settings):
    """launch: "graph" or "stream"; on the host there is only one way."""
    calls = min(MOST_CALLS, max(1, math.ceil(settings.sample_us / max(1.0, estimate_us))))
    if launch == "graph":
        calls = max(sets, math.ceil(calls / sets) * sets)
    return _runner(arrays, call, sets, calls, launch)


def launches_of(arrays, estimate_us):
    """How a call of this length is timed."""
    if arrays.memory == "host":
        return ("host",)
    return ("graph", "stream") if estimate_us < GRAPH_BELOW_US else ("stream",)


def race(runners, settings):
    """{name: samples in microseconds} of {name: runner}.
    A runner that raises loses its place: {name: the exception}."""
    if not runners:
        return {}
    samples = {name: [] for name in runners}
    failed = {}
    deadline = time.monotonic() + settings.warmup_s
    started = False
    while not started or time.monotonic() < deadline:
        _round(list(runners), runners, failed, lambda name, us: None)
        started = True
    order, shuffler = list(runners), random.Random(0)
    for _ in range(settings.samples):
        shuffler.shuffle(order)
        _round(order, runners, failed, lambda name, us: samples[name].append(us))
    return {name: failed.get(name, samples[name]) for name in runners}


def _round(order, runners, failed, keep):
    for name in order:
        if name in failed:
            continue
        try:
            keep(name, runners[name].sample_us())
        except Exception as error:
            failed[name] = error


def timed_fields(shape, samples_us, calls):
    """What a row says of its samples."""
    times = stats.summary(samples_us)
    return times | {
        "tflops": shape.flops / times["median_us"] * 1e-6,
        "gbps": shape.bytes / times["median_us"] * 1e-3,
        "calls_per_sample": calls,
        "samples_us": [round(us, 4) for us in samples_us],
    }
