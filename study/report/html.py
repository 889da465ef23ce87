# SPDX-License-Identifier: Apache-2.0
"""The page as one HTML file that needs nothing else: style and figures are in it; links to data files are relative."""

import re
from html import escape

from .page import Figure, Link, Table

STYLE = """
:root { color-scheme: light dark; --text: #1b1f24; --soft: #5b6470; --line: #d4d9df; --page: #ffffff; --head: #f3f5f7; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e3e6ea; --soft: #9aa4b0; --line: #3a424c; --page: #14171b; --head: #1f242a; } }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); padding-bottom: .2rem; }
a { color: inherit; text-decoration-color: var(--soft); }
nav { display: flex; flex-wrap: wrap; gap: .3rem 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top; }
th { background: var(--head); } .text { text-align: left; }
figure { margin: 1.5rem 0; } figure svg { width: 100%; max-width: 56rem; height: auto; color: var(--text); }
figcaption { color: var(--soft); }
"""


def write(title, sections, folder):
    body = [f"<h1>{escape(title)}</h1>", "<nav>"]
    body += [f'<a href="#{anchor(section)}">{escape(section.title)}</a>' for section in sections]
    body.append("</nav>")
    for section in sections:
        body.append(f'<h2 id="{anchor(section)}">{escape(section.title)}</h2>')
        body += [block(part, folder) for part in section.parts]
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n" + "\n".join(body) + "\n</body>\n</html>\n"
    )


def anchor(section):
    return re.sub(r"[^a-z0-9]+", "-", section.title.lower()).strip("-")


def block(part, folder):
    if isinstance(part, Table):
        return table(part)
    if isinstance(part, Figure):
        svg = (folder / part.svg).read_text(encoding="utf-8")
        svg = svg[svg.index("<svg") :].replace("<svg", f'<svg role="img" aria-label="{escape(part.alt)}"', 1)
        caption = f'{escape(part.title)} (<a href="{escape(part.data)}">data</a>)'
        return f"<figure>\n{svg}\n<figcaption>{caption}</figcaption>\n</figure>"
    return f"<p>{inline(part)}</p>"


def inline(text):
    """The marks of Markdown that the texts use."""
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
    text = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text)
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text)


def table(part):
    def row(tag, cells):
        classes = ['class="text"' if i < part.text_columns else "" for i in range(len(cells))]
        return "<tr>" + "".join(f"<{tag} {c}>{cell(v)}</{tag}>" for c, v in zip(classes, cells)) + "</tr>"

    lines = ['<div class="wide"><table>', row("th", part.columns), *(row("td", cells) for cells in part.rows)]
    return "\n".join([*lines, "</table></div>"])


def cell(value):
    if value is None:
        return "–"
    if isinstance(value, Link):
        return f'<a href="{escape(value.target)}">{escape(value.text)}</a>'
    return inline(str(value))
