# SPDX-License-Identifier: Apache-2.0
"""The folder of a study. raw/ holds one file for each finished unit, written whole or not at all, so that a run that
was interrupted goes on with what is missing; everything else is made from it."""

import json
import os
import re
import tempfile
from pathlib import Path

SCHEMA_VERSION = 1


class Store:
    def __init__(self, folder):
        self.folder = Path(folder)

    def raw_path(self, experiment, key):
        return self.folder / "raw" / experiment / f"{key}.json"

    def has(self, experiment, key):
        return self.raw_path(experiment, key).exists()

    def keep(self, experiment, key, document):
        write_json(self.raw_path(experiment, key), {"schema_version": SCHEMA_VERSION, **document})

    def documents(self, experiment):
        """(name relative to the study's folder, document) of each finished unit."""
        found = []
        for path in sorted((self.folder / "raw" / experiment).glob("*.json"), key=numbers_by_value):
            found.append((str(path.relative_to(self.folder)), read_json(path)))
        return found

    def rows(self, experiment):
        """All rows of an experiment, each with the raw file that it is from."""
        return [row | {"raw": name} for name, document in self.documents(experiment) for row in document["rows"]]


def numbers_by_value(path):
    """So that 7b comes before 14b and m64 before m256."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", path.name)]


def read_json(path):
    with open(path, encoding="utf-8") as file:
        try:
            document = json.load(file)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
    if document.get("schema_version") != SCHEMA_VERSION:
        raise ValueError(f"{path}: schema_version is {document.get('schema_version')}, not {SCHEMA_VERSION}")
    return document


def write_json(path, document):
    write_text(path, json.dumps(document, indent=1, allow_nan=False) + "\n")


def write_text(path, text):
    """To a temporary name, then renamed: a reader never sees a part."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
