# SPDX-License-Identifier: Apache-2.0
"""Many threads at once, and what a warm call costs beside the library's own work."""

import threading
import timeit

import numpy as np

import expected
import tileglu


def test_threads_share_weights_and_nothing_else():
    _, gate, up = expected.operands(1, 40, 64, "fp32")
    wrong = []

    def work(seed):
        m = 1 + seed % 5
        x = expected.operands(m, 40, 64, "fp32", seed)[0]
        wanted = expected.exact(x, gate, up)
        try:
            for _ in range(50):
                assert expected.error(tileglu.glu(x, gate, up), wanted) < 1e-5
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_many_sizes_do_not_keep_every_plan(monkeypatch):
    from tileglu import _call, _plan

    _call._calls.clear()
    _plan._cache.clear()
    monkeypatch.setattr(_call, "_MOST_CALLS", 8)
    monkeypatch.setattr(_plan, "_CACHE_SIZE", 8)
    x, gate, up = expected.operands(40, 8, 16, "fp32")
    for m in range(40):
        assert expected.error(tileglu.glu(x[: m + 1], gate, up), expected.exact(x[: m + 1], gate, up)) < 1e-5
        assert len(_call._calls) <= 8 and len(_plan._cache) <= 8


def microseconds(call, number=200, repeat=50):
    call()
    return min(timeit.repeat(call, number=number, repeat=repeat)) / number * 1e6


def test_overhead_of_a_warm_call(record_property):
    """With no tokens the library returns before any work: what is left is Python, ctypes and the checks. The aim is 10
    us; the limit is generous, since CI machines are slow and shared."""
    _, gate, up = expected.operands(1, 40, 64, "fp32")
    x, out = np.empty((0, 64), np.float32), np.empty((0, 40), np.float32)
    found = {
        "numpy": microseconds(lambda: tileglu.glu(x, gate, up)),
        "numpy, out=": microseconds(lambda: tileglu.glu(x, gate, up, out=out)),
    }
    for name, value in found.items():
        record_property(name, f"{value:.1f} us")
        print(f"warm call, {name}: {value:.1f} us")
    assert max(found.values()) < 100
