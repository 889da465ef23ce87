# SPDX-License-Identifier: Apache-2.0
"""The command line: run, plan, layers, render. Exit codes as the tool's: 0 fine, 1 something failed, 2 wrong
arguments or input, 3 what it needs is not here."""

import argparse
import json
import sys
from pathlib import Path

from . import locate
from .arrays import Unavailable

OK, FAILED, USAGE, UNAVAILABLE = 0, 1, 2, 3


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(USAGE, f"study: {message}\n")


def comma_list(text):
    return tuple(part for part in text.split(",") if part)


def batch_list(text):
    sizes = tuple(int(part) for part in comma_list(text))
    if not sizes or min(sizes) < 1:
        raise argparse.ArgumentTypeError(f"--m={text}: a list of integers from 1")
    return sizes


def add_run_options(parser):
    parser.add_argument("--quick", action="store_true", help="fewer shapes and samples")
    parser.add_argument("--only", type=comma_list, default=(), metavar="A,B", help="these experiments alone")
    parser.add_argument("--models", type=comma_list, metavar="A,B", help="instead of the preset's models")
    parser.add_argument("--m", type=batch_list, metavar="1,16", help="instead of the preset's batch sizes")
    parser.add_argument("--dtype", choices=("bf16", "fp16"), default="bf16")
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto")
    parser.add_argument("--checkpoint", type=Path, metavar="DIR", help="real layers for the numerics (study layers)")


def parse(arguments):
    parser = Parser(prog="study", description="Measures every claim of the paper beside what people use instead.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="measure what DIR still lacks")
    run.add_argument("folder", type=Path, metavar="DIR")
    add_run_options(run)
    run.add_argument("--budget", type=float, metavar="SECONDS", help="start nothing that would end later")
    run.add_argument("--again", action="store_true", help="measure also what DIR has")
    plan = commands.add_parser("plan", help="what run would measure, and how long each experiment takes")
    add_run_options(plan)
    extract = commands.add_parser("layers", help="copy three layers and their inputs out of a checkpoint")
    extract.add_argument("checkpoint", type=Path)
    extract.add_argument("target", type=Path)
    render = commands.add_parser("render", help="report.html and report.md from DIR (tileglu report)")
    render.add_argument("folder", type=Path, metavar="DIR")
    render.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


def run(options):
    from . import run as runner
    from . import summary

    if options.checkpoint and not (options.checkpoint / "inputs.safetensors").exists():
        raise ValueError(f"--checkpoint={options.checkpoint}: it has no inputs.safetensors (./dev demo makes one)")
    done, over, failed = runner.run(options.folder, options, ["study", *sys.argv[1:]])
    for line in summary.lines(options.folder):
        print(line)
    for failure in failed:
        print(f"study: {failure}", file=sys.stderr)
    print(
        f"{done} units measured, {over} left over by --budget, {len(failed)} failed; raw files in {options.folder}/raw"
    )
    return FAILED if failed else OK


def plan(options):
    from . import run as runner

    total = 0.0
    for name, count, seconds in runner.cost_table(options):
        print(f"{name:12} {count:4} units  about {seconds:6.0f} s")
        total += seconds
    print(f"{'all':12}             about {total:6.0f} s")
    return OK


def extract(options):
    from . import layers

    layers.extract(options.checkpoint, options.target)
    return OK


def render(options):
    from .report import render as renderer

    files = [str(path) for path in renderer.render(options.folder)]
    print(json.dumps({"files": files}) if options.json else "\n".join(files))
    return OK


def main(arguments):
    options = parse(arguments)
    locate.prepare()
    try:
        return {"run": run, "plan": plan, "layers": extract, "render": render}[options.command](options)
    except (ImportError, Unavailable) as error:
        return refuse(UNAVAILABLE, error)
    except RuntimeError as error:  # of tileglu: no tool, no library that fits
        return refuse(UNAVAILABLE, error)
    except KeyError as error:
        return refuse(USAGE, f"a raw file lacks the field {error}: it was measured by another version")
    except (ValueError, OSError) as error:
        return refuse(USAGE, error)


def refuse(code, error):
    print("study: " + " ".join(str(error).split()), file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
