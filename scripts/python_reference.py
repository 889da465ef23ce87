#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/python-api.md from the docstrings in python/tileglu, which it reads without importing anything.

--check writes nothing and fails if the page is out of date.
"""

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python/tileglu"
PAGE = ROOT / "docs/python-api.md"
MODULES = ["__init__", "torch", "transformers", "jax"]
INTRODUCTION = """# Python reference

Written by `scripts/python_reference.py` from the docstrings; [python.md](python.md) is the guide.
"""


def exported(tree):
    """Names in __all__, in order."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
            return ast.literal_eval(node.value)
    raise SystemExit("python_reference: a module has no __all__")


def definitions(tree):
    """{name: node} of functions and classes of a module, and of what it imports from modules of this package."""
    found = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
            there = definitions(parse(node.module))
            for alias in node.names:
                if alias.name in there:
                    found.setdefault(alias.asname or alias.name, there[alias.name])
    return found


def parse(module):
    return ast.parse((PACKAGE / f"{module}.py").read_text())


def signature(node, name):
    arguments = ast.unparse(node.args).replace("_Any", "Any")
    shown = ", ".join(part for part in arguments.split(", ") if part not in ("self", "cls"))
    result = f" -> {ast.unparse(node.returns)}".replace("_Any", "Any") if node.returns else ""
    return f"{name}({shown}){result}"


def entry(title, node):
    docstring = ast.get_docstring(node)
    return f"### `{title}`\n\n```text\n{docstring}\n```\n" if docstring else ""


def entries(prefix, name, node):
    if isinstance(node, ast.FunctionDef):
        yield entry(signature(node, prefix + name), node)
        return
    bases = ", ".join(map(ast.unparse, node.bases))
    yield entry(f"class {prefix}{name}" + (f"({bases})" if bases else ""), node)
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
            yield entry(signature(member, f"{name}.{member.name}"), member)


def page():
    parts = [INTRODUCTION]
    for module in MODULES:
        tree = parse(module)
        path = "tileglu" if module == "__init__" else f"tileglu.{module}"
        parts.append(f"## {path}\n\n```text\n{ast.get_docstring(tree)}\n```\n")
        found = definitions(tree)
        for name in exported(tree):
            if name in found:
                parts += filter(None, entries(f"{path}.", name, found[name]))
    return "\n".join(parts)


def main():
    if sys.argv[1:] == ["--check"]:
        if not PAGE.exists() or PAGE.read_text() != page():
            print(f"{PAGE.name} is out of date: run scripts/python_reference.py", file=sys.stderr)
            return 1
    else:
        PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
