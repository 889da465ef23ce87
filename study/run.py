# SPDX-License-Identifier: Apache-2.0
"""Runs the units that a study still lacks, one file each, and what is made from all of them."""

import gc
import shlex
import time
from dataclasses import replace

from . import arrays, derive, experiments, nvml, presets
from .progress import Progress
from .store import SCHEMA_VERSION, Store, read_json, write_json


def make_context(options):
    """ValueError, arrays.Unavailable: the options ask for what does not exist, or is not here."""
    found, why_not = arrays.choose(options.device)
    if options.quick:
        preset = presets.QUICK
    else:
        preset = presets.FULL
    if found.memory == "host":
        preset = presets.CPU
    if options.models:
        preset = replace(preset, models=options.models, end_to_end_models=options.models)
    if options.m:
        preset = replace(preset, batches=options.m, share_batches=options.m)
    context = experiments.Context(found, preset, options.dtype, checkpoint=options.checkpoint)
    if found.memory == "cuda":
        context.sensors = nvml.sensors_of(found.torch)
    return context, why_not


def units_of(context, only):
    modules = experiments.modules()
    unknown = set(only) - {module.NAME for module in modules}
    if unknown:
        names = ", ".join(module.NAME for module in modules)
        raise ValueError(f"--only={','.join(only)}: unknown experiment {min(unknown)}; there are {names}")
    return [unit for module in modules if not only or module.NAME in only for unit in module.units(context)]


def run(folder, options, command):
    """Returns (units that were done now, units that the budget left over, units that failed as a whole)."""
    started = time.monotonic()  # making the context takes seconds on a GPU
    context, why_not_gpu = make_context(options)
    store = Store(folder)
    units = units_of(context, options.only)
    planned = with_earlier(store, context, units)
    left = [unit for unit in units if options.again or not store.has(unit.experiment, unit.key)]
    write_json(store.folder / "study.json", about(context, why_not_gpu, command, planned))
    progress = Progress(sum(unit.seconds for unit in left))
    done, over, failed = 0, 0, []
    for unit in left:
        gone = time.monotonic() - started
        if options.budget and gone + unit.seconds * progress.pace() > options.budget:
            over += 1
            continue
        progress.show(f"{unit.experiment} {unit.key}")
        try:
            store.keep(unit.experiment, unit.key, measured(context, unit))
            done += 1
        except Exception as error:
            failed.append(f"{unit.experiment} {unit.key}: {type(error).__name__}: {error}")
        progress.done += unit.seconds
        gc.collect()
        context.arrays.release()
    progress.finish()
    try:
        derive.all_files(store)
    except RuntimeError as error:
        failed.append(f"derived files: {error}")
    return done, over, failed


def with_earlier(store, context, units):
    """{experiment: keys} of these units and of those that earlier runs into the folder were to measure. ValueError if
    the folder's figures are of another memory or dtype."""
    path, planned = store.folder / "study.json", {}
    if path.exists():
        found = read_json(path)
        for name, now in (("memory", context.arrays.memory), ("dtype", context.dtype)):
            if found[name] != now:
                raise ValueError(f"{store.folder} holds a study with {name} {found[name]}, and this run has {now}")
        planned = found.get("units", {})
    for unit in units:
        keys = planned.setdefault(unit.experiment, [])
        if unit.key not in keys:
            keys.append(unit.key)
    return planned


def measured(context, unit):
    """The unit's document. Raises if the device is out of order afterwards, since its figures then mean nothing."""
    sensors = context.sensors
    before, started = sensors.reading() if sensors else None, time.time()
    document = unit.run()
    context.arrays.synchronize()
    return {
        "experiment": unit.experiment,
        "unit": unit.key,
        "started_unix": round(started),
        "seconds": round(time.time() - started, 2),
        "sensors_at_start": before,
        "sensors_at_end": sensors.reading() if sensors else None,
        **document,
    }


def about(context, why_not_gpu, command, planned):
    preset = context.preset
    return {
        "schema_version": SCHEMA_VERSION,
        "command": shlex.join(command),
        "preset": preset.name,
        "memory": context.arrays.memory,
        "arrays": context.arrays.name,
        "why_not_gpu": why_not_gpu,
        "dtype": context.dtype,
        "samples": preset.timing.samples,
        "sample_us": preset.timing.sample_us,
        "warmup_s": preset.timing.warmup_s,
        "energy_s": preset.energy_s,
        "paper_models": presets.PAPER_MODELS,
        "paper_batches": presets.PAPER_BATCHES,
        "units": planned,
    }


def cost_table(options):
    """(experiment, units, estimated seconds) of what a run with these options does."""
    context, _ = make_context(options)
    table = {}
    for unit in units_of(context, options.only):
        count, seconds = table.get(unit.experiment, (0, 0.0))
        table[unit.experiment] = count + 1, seconds + unit.seconds
    return [(name, count, seconds) for name, (count, seconds) in table.items()]
