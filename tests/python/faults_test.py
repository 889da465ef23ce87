# SPDX-License-Identifier: Apache-2.0
"""Planted faults: the tests that compare values do fail if gate and up are exchanged, or if a row is not written.
(Tests that only compare one way of calling with another cannot.)"""

import ctypes
import importlib
import importlib.util
import sys

import pytest

from tileglu import _operands, _plan
from tileglu._names import ELEMENT_BYTES, LAYOUTS

EXCHANGED = {LAYOUTS["gate_up"]: LAYOUTS["up_gate"], LAYOUTS["up_gate"]: LAYOUTS["gate_up"]}


def exchange_gate_and_up(monkeypatch):
    launch, cached = _plan.Plan._launch, _plan.cached

    def launch_exchanged(self, framework, x, a, gate, up, *others):
        launch(self, framework, x, a, up or gate, gate if up else 0, *others)

    def cached_exchanged(fields, *names):
        return cached(fields._replace(layout=EXCHANGED.get(fields.layout, fields.layout)), *names)

    monkeypatch.setattr(_plan.Plan, "_launch", launch_exchanged)
    monkeypatch.setattr(_plan, "cached", cached_exchanged)


def skip_the_last_row(monkeypatch):
    launch = _plan.Plan._launch

    def launch_without(self, framework, x, a, gate, up, y, *others):
        launch(self, framework, x, a, gate, up, y, *others)
        f = self.fields
        size = ELEMENT_BYTES[f.dtype_y or f.dtype]
        if f.m:
            ctypes.memset(y + (f.m - 1) * (f.ldy or f.n) * size, 0, f.n * size)

    monkeypatch.setattr(_plan.Plan, "_launch", launch_without)


def forget_the_operands(monkeypatch):
    launch, read = _plan.Plan._launch, _operands.fields_of
    monkeypatch.setattr(_operands, "fields_of", lambda *arguments: {**read(*arguments), "operands": 0, "layout_add": 0, "ld_add": 0})
    monkeypatch.setattr(_plan.Plan, "_launch", lambda self, *arguments: launch(self, *arguments[:7]))


FAULTS = [exchange_gate_and_up, skip_the_last_row]
TESTS = [
    ("numpy_test", "test_values", ((7, 40, 64), "silu", "bf16")),
    ("numpy_test", "test_values", ((65, 200, 128), "gelu_tanh", "fp32")),
    ("numpy_test", "test_leading_dimensions", ()),
    ("numpy_test", "test_strides_of_weights_and_out", ()),
    ("dlpack_test", "test_mixed_with_numpy_strided_and_with_an_offset", ()),
    ("threads_test", "test_threads_share_weights_and_nothing_else", ()),
    ("torch_test", "test_values", ("bf16", "silu")),
    ("torch_test", "test_module_shares_weights_and_state", ()),
    ("torch_test", "test_module_of_its_own_and_merged", ()),
    ("transformers_test", "test_families", ("Qwen2",)),
    ("transformers_test", "test_families", ("Phi3",)),
    ("transformers_test", "test_bf16_is_nearer_to_fp32_than_unpatched", ("Gemma2",)),
    ("transformers_test", "test_bf16_is_nearer_to_fp32_than_unpatched", ("Phi3",)),
]


@pytest.fixture(autouse=True)
def no_plans_with_faults_stay():
    clear()
    yield
    clear()


def clear():
    from tileglu import _call

    _call._calls.clear()
    if "tileglu.torch" in sys.modules:
        sys.modules["tileglu.torch"]._warm.clear()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("module, test, arguments", TESTS)
def test_caught(module, test, arguments, fault, monkeypatch):
    for package in ("torch", "transformers"):
        if module in (f"{package}_test", "transformers_test") and importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    caught(module, test, arguments, fault, monkeypatch)


@pytest.mark.parametrize("place", ["numpy", "torch"])
def test_forgotten_biases_are_caught(place, monkeypatch):
    from formulas_test import Place

    caught("formulas_test", "test_values", (Place(place), "both biases", "bf16"), forget_the_operands, monkeypatch)


def test_forgotten_biases_of_a_model_are_caught(monkeypatch):
    for package in ("torch", "transformers"):
        pytest.importorskip(package)
    test = "transformers_test", "test_c22_biases_are_part_of_what_is_computed", ("Llama",)
    caught(*test, forget_the_operands, monkeypatch)


def caught(module, test, arguments, fault, monkeypatch):
    function = getattr(importlib.import_module(module), test)
    fault(monkeypatch)
    with pytest.raises(AssertionError):
        function(*arguments)
