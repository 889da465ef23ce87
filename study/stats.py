# SPDX-License-Identifier: Apache-2.0
"""Medians and percentiles, as `tileglu bench` takes them."""

import math


def percentile(values, share):
    """Linear between neighbours."""
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def summary(samples_us):
    return {
        name: percentile(samples_us, share) for name, share in (("median_us", 0.5), ("p5_us", 0.05), ("p95_us", 0.95))
    }


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None
