# SPDX-License-Identifier: Apache-2.0
"""What the package mirrors of tileglu.h is what the header says."""

import ctypes
import re
import subprocess

import pytest

import tileglu
from tileglu import _library, _names


@pytest.fixture(scope="module")
def header(root):
    return (root / "include/tileglu/tileglu.h").read_text()


@pytest.mark.parametrize(
    "enumeration, prefix, table",
    [
        ("dtype", "", _names.DTYPES),
        ("activation", "", _names.ACTIVATIONS),
        ("layout", "", _names.LAYOUTS),
        ("memory", "MEMORY_", _names.MEMORIES),
        ("backend", "BACKEND_", _names.BACKENDS),
    ],
)
def test_enumerations(header, enumeration, prefix, table):
    body = re.search(rf"typedef enum tileglu_{enumeration} {{(.*?)}} tileglu_{enumeration};", header, re.S).group(1)
    found = {name.lower(): int(value) for name, value in re.findall(rf"TILEGLU_{prefix}(\w+) = (\d+)", body)}
    assert found == table


def test_roundings_and_operands(header):
    once, unfused = (int(re.search(rf"TILEGLU_ROUND_{name} = (\d+)", header).group(1)) for name in ("ONCE", "UNFUSED"))
    assert _names.ROUNDINGS == {"fp32": once, "unfused": unfused}
    body = re.search(r"typedef enum tileglu_operand {(.*?)} tileglu_operand;", header, re.S).group(1)
    assert _names.OPERANDS == {name.lower(): int(bit) for name, bit in re.findall(r"TILEGLU_(\w+) = (\d+)", body)}


def test_statuses(header):
    body = re.search(r"typedef enum tileglu_status {(.*?)} tileglu_status;", header, re.S).group(1)
    from tileglu._errors import BY_STATUS

    found = {int(value): name for name, value in re.findall(r"TILEGLU_(\w+) = (\d+)", body)}
    assert {0: "OK", **{status: re.sub("(?<!^)([A-Z])", r"_\1", kind.__name__).upper() for status, kind in
                        BY_STATUS.items()}} == found  # fmt: skip


def test_version(header):
    numbers = [int(n) for n in re.findall(r"#define TILEGLU_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header)]
    assert _library.VERSION == tuple(numbers[:2])
    assert tileglu.version() == tileglu.__version__ == ".".join(map(str, numbers))
    assert tileglu.version() in tileglu.build_info()


def test_structs_have_the_layout_of_the_header(root, tmp_path):
    structs = {"problem": _library.Problem, "options": _library.Options, "args": _library.Args}
    lines = [f'printf("%zu ", sizeof(tileglu_{name}));' for name in structs]
    lines += [
        f'printf("%zu ", offsetof(tileglu_{name}, {field}));' for name, s in structs.items() for field, _ in s._fields_
    ]
    source = tmp_path / "layout.c"
    source.write_text(
        "#include <stdio.h>\n#include <tileglu/tileglu.h>\nint main(void) {" + "\n".join(lines) + "return 0;}"
    )
    try:
        subprocess.run(["cc", "-I", root / "include", source, "-o", tmp_path / "layout"], check=True)
    except FileNotFoundError:
        pytest.skip("no C compiler")
    printed = subprocess.run([tmp_path / "layout"], check=True, capture_output=True, text=True).stdout
    wanted = [ctypes.sizeof(s) for s in structs.values()]
    wanted += [getattr(s, field).offset for s in structs.values() for field, _ in s._fields_]
    assert [int(n) for n in printed.split()] == wanted


def test_every_test_that_the_field_cases_name_exists(root):
    page = (root / "docs/field-cases.md").read_text().partition("## Python")[2].partition("\n## ")[0]
    sources = "".join(path.read_text() for path in (root / "tests/python").glob("*_test.py"))
    named = set(re.findall(r"\b(test_c?\w+)`", page))
    assert len(named) > 25 and not [name for name in named if f"def {name}(" not in sources]
    found = set(re.findall(r"def (test_c\d\d\w*)\(", sources))
    assert not found - named, "tests of cases that docs/field-cases.md does not name"
