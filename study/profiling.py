# SPDX-License-Identifier: Apache-2.0
"""Which kernels a call runs and how long each takes, from torch's profiler."""

ELEMENTWISE = ("silu", "mul", "elementwise", "vectorized")


def kernels_of(arrays, calls):
    """{name: (count, microseconds)} over all of `calls`: kernels on a GPU, operators of ATen on the host.
    RuntimeError if there are none, as where the machine does not let programs profile."""
    torch = arrays.torch
    from torch.profiler import ProfilerActivity, profile

    on_gpu = arrays.memory == "cuda"
    activities = [ProfilerActivity.CUDA, ProfilerActivity.CPU] if on_gpu else [ProfilerActivity.CPU]
    with torch.no_grad(), profile(activities=activities) as profiler:
        for call in calls:
            call()
        arrays.synchronize()
    found = {}
    for event in profiler.key_averages():
        if on_gpu and event.device_type != torch.autograd.DeviceType.CUDA:
            continue
        us = event.self_device_time_total if on_gpu else event.self_cpu_time_total
        if us > 0:
            found[event.key] = (event.count, us)
    if not found:
        raise RuntimeError("the profiler saw no kernel")
    return found


def is_elementwise(name):
    lower = name.lower()
    return any(word in lower for word in ELEMENTWISE) and "gemm" not in lower and "matmul" not in lower
