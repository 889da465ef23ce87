# SPDX-License-Identifier: Apache-2.0
"""What is compared. A contender is a function of a Case that gives a Prepared, or raises: Skip if it does not apply
to the shape, NotFound if the user does not have it, anything else if it failed. Whatever it raises becomes a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable


class Skip(Exception):
    """It does not apply to this shape."""


class NotFound(Exception):
    """It is not installed here."""


@dataclass
class Prepared:
    call: Callable  # index of the set of operands -> the result
    config: str = ""  # which kernel, or what exactly was called
    layout: str = "separate"  # of the weights
    result: str = "glu"  # or "product": the two matrix products without activation
    generated_kernels: int | None = None  # by a compiler
    external_us: float | None = None  # timed by a program of its own, which call cannot run


def table():
    """{name: contender}, in the order in which tables show them."""
    from . import compiled, eager, fused, others

    return {**eager.CONTENDERS, **compiled.CONTENDERS, **others.CONTENDERS, **fused.CONTENDERS}


def outcome(error):
    """(status, reason) of a row for an exception."""
    status = "skipped" if isinstance(error, Skip) else "not_found" if isinstance(error, NotFound) else "failed"
    text = str(error).strip().splitlines()
    return status, text[0][:300] if text else type(error).__name__
