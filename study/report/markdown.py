# SPDX-License-Identifier: Apache-2.0
"""The page as Markdown."""

from .page import Figure, Link, Table


def write(title, sections):
    lines = [f"# {title}", ""]
    for section in sections:
        lines += [f"## {section.title}", ""]
        for part in section.parts:
            lines += block(part) + [""]
    return "\n".join(lines)


def block(part):
    if isinstance(part, Table):
        return table(part)
    if isinstance(part, Figure):
        return [f"![{part.alt}]({part.svg})", "", f"*{part.title}* ([data]({part.data}))"]
    return [part]


def table(part):
    marks = ["---"] * part.text_columns + ["---:"] * (len(part.columns) - part.text_columns)
    return [line(part.columns), "|" + "|".join(marks) + "|", *(line(row) for row in part.rows)]


def line(cells):
    return "| " + " | ".join(cell(c) for c in cells) + " |"


def cell(value):
    if value is None:
        return "–"
    if isinstance(value, Link):
        return f"[{value.text}]({value.target})"
    return str(value).replace("|", "\\|").replace("\n", " ")
