# SPDX-License-Identifier: Apache-2.0
"""The planner's time model (src/plan/time_model.cpp) again, for fit_times.py, with its numbers read from the C++. That both say
the same is tested (tests/scripts/time_model_test.py)."""

import math
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIMES = ROOT / "src/plan/sm90_times.inc"
TILE_K = 64


def constant(file, name):
    """A number that the planner's C++ defines."""
    return float(re.search(rf"\b{name} = ([\d.e]+)", (ROOT / "src/plan" / file).read_text())[1])


SM_COUNT = 132
LAUNCH_US = constant("time_model.cpp", "kLaunchUs")
LAUNCH_STREAMED_US = constant("time_model.cpp", "kLaunchStreamedUs")
LAUNCH_ALL_SMS_US = constant("time_model.cpp", "kLaunchAllSmsUs")
SUSTAINED_TFLOPS = constant("time_model.cpp", "kSustainedFlopPerUs") * SM_COUNT * 1e-6
L2_TBPS = constant("time_model.cpp", "kL2BytesPerUs") * 1e-6
OFF_LINE, OFF_SECTOR = constant("time_model.cpp", "kOffLine"), constant("time_model.cpp", "kOffSector")
LINE, SECTOR = int(constant("time_model.cpp", "kLine")), int(constant("time_model.cpp", "kSector"))
ALONE_DECODE = constant("time_model.cpp", "kAloneDecode")
ALONE_PREFILL = constant("time_model.cpp", "kAlonePrefill")
NORM, L2_NORM = constant("time_model.cpp", "kNorm"), constant("time_model.cpp", "kL2Norm")
WHOLE_WAVES = constant("time_model.cpp", "kWholeWaves")
SHORTEST_PART = int(constant("work_split.hpp", "kShortestPart"))
MOST_PARTS = int(constant("work_split.hpp", "kMostParts"))
NAME = re.compile(
    r"(?P<family>[a-z_]+)_(?P<m>\d+)x(?P<n2>\d+)_(?:pingpong|cooperative)_c(?P<cluster>\d)x1"
    r"(?:_k(?P<split>\d))?(?P<shared>_sk)?(?:_general)?(?:_g\d)?$"
)
STREAMED = re.compile(r"decode_(?P<m>\d+)x(?P<n2>\d+)x(?P<k>\d+)_(?P<kind>mma|vector)$")


def ceil_div(x, y):
    return -(-x // y)


def work_of(name, m, n, k):
    """(tiles of the busiest worker, its steps along k, parts that a collector takes, bytes from L2, share of the SMs):
    time_model.cpp."""
    streamed = STREAMED.match(name)
    if streamed:
        outputs, mma, tile_k = int(streamed["n2"]) // 2, streamed["kind"] == "mma", int(streamed["k"])
        if mma:
            slots = 5 if streamed["m"] == "8" and tile_k == 512 else 4
        else:
            slots = 12 if tile_k == 256 else 10
        blocks = ceil_div(n, outputs) if mma else ceil_div(n, 4 * outputs)
        waves = blocks / (SM_COUNT * slots * 0.5)
        waves = max(1.0, WHOLE_WAVES * math.ceil(waves) + (1 - WHOLE_WAVES) * waves)
        return waves, ceil_div(k, tile_k), 0, 0, min(1.0, blocks / SM_COUNT)
    config = NAME.match(name)
    rows, most_columns = int(config["m"]), int(config["n2"]) // 2
    cluster, split = int(config["cluster"]), int(config["split"] or 1)
    usable = SM_COUNT * 7 // 8 if cluster * split > 2 else SM_COUNT  # most_workers()
    tiles_m, most, columns = ceil_div(m, rows * cluster), usable // (cluster * split), most_columns
    if config["family"] == "decode" and not config["shared"]:  # tile_rows() and tile_columns()
        rows = ceil_div(m, tiles_m * cluster)
        tiles_n = ceil_div(tiles_m * ceil_div(n, columns), most) * most // tiles_m
        columns = 8 * ceil_div(n, 8 * tiles_n)
    tiles, k_blocks = tiles_m * ceil_div(n, columns), ceil_div(k, TILE_K)
    useful = tiles * min(ceil_div(k_blocks, SHORTEST_PART), MOST_PARTS) if config["shared"] else tiles
    workers = min(useful, most)  # at a time
    rest = tiles % workers
    shared = rest + (workers if tiles >= workers else 0) if rest and config["shared"] else 0
    waves = shared / workers + ceil_div(tiles - shared, workers)
    busy = workers / most if config["shared"] else tiles / (waves * most)
    alone = ALONE_DECODE * columns / most_columns if config["family"] == "decode" else ALONE_PREFILL
    busiest = waves * (1 - alone * (1 - busy))
    parts = max(1.0, workers / tiles) if shared else 0
    l2_bytes = 2 * TILE_K * k_blocks * tiles * (cluster * rows + 2 * columns)
    return busiest, ceil_div(k_blocks, split), parts, l2_bytes, workers / most


def predict(name, m, n, k, numbers):
    step_us, tile_us, part_us, gbps = numbers
    tiles, steps, parts, l2_bytes, sms = work_of(name, m, n, k)
    worker = tiles * (steps * step_us + tile_us) + part_us * parts
    off_grid = 1 if k % LINE == 0 else OFF_LINE if k % SECTOR == 0 else OFF_SECTOR
    l2 = l2_bytes * off_grid / L2_TBPS * 1e-6
    memory = 2 * (m * k + 2 * n * k + m * n) / gbps * 1e-3
    sm = (worker**L2_NORM + l2**L2_NORM) ** (1 / L2_NORM)
    launch = (LAUNCH_STREAMED_US if STREAMED.match(name) else LAUNCH_US) + LAUNCH_ALL_SMS_US * sms
    return launch + max((sm**NORM + memory**NORM) ** (1 / NORM), 4 * m * n * k / SUSTAINED_TFLOPS * 1e-6)


def written():
    """{kernel: its four numbers} of sm90_times.inc."""
    row = r'kernel = "([^"]+)", .step_us = ([\d.]+), .tile_us = ([\d.]+), .part_us = ([\d.]+), .gbps = ([\d.]+)'
    return {name: tuple(map(float, numbers)) for name, *numbers in re.findall(row, TIMES.read_text())}
