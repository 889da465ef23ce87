# SPDX-License-Identifier: Apache-2.0
"""DIR/report.html and DIR/report.md, the claims, and the figures with their data, from what a run left in DIR."""

from pathlib import Path

from ..store import write_text
from . import claims, figures, grid, html, markdown, method, parts, roof
from .data import Data
from .page import Figure, Section

TITLE = "tileglu: the study"


def render(folder):
    """Returns the files it wrote. ValueError if the folder holds no study, ImportError without matplotlib."""
    folder = Path(folder)
    if not (folder / "study.json").exists():
        raise ValueError(f"{folder} holds no study: there is no study.json")
    figures.pyplot()
    data = Data(folder)
    sections = [
        Section("Summary", method.summary(data)),
        claims.section(data),
        grid.speedup(data),
        grid.paper_view(data),
        parts.share(data),
        grid.utilisation(data),
        roof.roofline(data),
        roof.efficiency(data),
        parts.numerics(data),
        parts.end_to_end(data),
        parts.energy(data),
        parts.compiled(data),
        method.failures(data),
        method.method(data),
        method.files(data),
    ]
    write_text(folder / "report.md", markdown.write(TITLE, sections))
    write_text(folder / "report.html", html.write(TITLE, sections, folder))
    drawn = [part for section in sections for part in section.parts if isinstance(part, Figure)]
    return [
        folder / "report.html",
        folder / "report.md",
        folder / claims.FILE,
        *(folder / f.svg for f in drawn),
        *(folder / f.data for f in drawn),
    ]
