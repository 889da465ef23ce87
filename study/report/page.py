# SPDX-License-Identifier: Apache-2.0
"""What a page is made of, whatever it is written as."""

from __future__ import annotations

from dataclasses import dataclass, field

NOT_MEASURED = "not measured"


@dataclass
class Link:
    text: str
    target: str  # relative to the study's folder


@dataclass
class Table:
    columns: list[str]
    rows: list[list]  # cells: str, Link or None (a dash)
    text_columns: int = 1  # the first ones; the others are numbers, right-aligned


@dataclass
class Figure:
    name: str  # figures/<name>.svg, from data/<name>.json
    title: str
    alt: str

    @property
    def svg(self):
        return f"figures/{self.name}.svg"

    @property
    def data(self):
        return f"data/{self.name}.json"


@dataclass
class Section:
    title: str
    parts: list = field(default_factory=list)  # str (a paragraph), Table, Figure


def number(value, form="{:.2f}"):
    """A cell; None becomes a dash."""
    return None if value is None else form.format(value)


def percent(value, form="{:.1%}"):
    return number(value, form)


def us(value):
    return number(value, "{:.1f}" if value is None or value < 1e4 else "{:.0f}")


def raw(row):
    """The last cell of a row: where its samples are."""
    return Link("raw", row["raw"])
