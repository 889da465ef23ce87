# SPDX-License-Identifier: Apache-2.0
"""The gated projection of an LLM's MLP as one kernel:  Y = act(X Wgate^T) * (X Wup^T).

    import tileglu
    y = tileglu.glu(x, gate, up)              # x [..., k], gate [n, k], up [n, k] -> y [..., n]
    y = tileglu.glu_merged(x, gate_up)        # one matrix [2n, k], gate rows first

Arrays may be of NumPy, torch, or anything with __dlpack__ or __cuda_array_interface__; where they lie decides the
backend, and nothing is copied between host and device. dtypes: bf16, fp16, fp32, one for all operands; sums are fp32
and the result is rounded once. Errors are tileglu.Error with the reason.

tileglu.torch has the torch ops and FusedGatedMLP, tileglu.transformers patches models, tileglu.jax has the same
functions under jit and vmap.
"""

from __future__ import annotations

from typing import Any as _Any

from ._arrays import TORCH as _TORCH
from ._arrays import framework_of as _framework_of
from ._arrays import known as _known
from ._call import glu as _glu
from ._errors import (
    CudaError,
    Error,
    InternalError,
    InvalidArgument,
    LibraryNotFound,
    NotAvailable,
    NotSupported,
    OutOfMemory,
    WorkspaceTooSmall,
)
from ._library import library as _load
from ._names import ACTIVATIONS, BACKENDS, DTYPES, LAYOUTS, MERGED_ORDERS, OPERANDS, ROUNDINGS
from ._names import code as _code
from ._plan import Plan, backends, can_implement, kernels, plan

__all__ = [
    "ACTIVATIONS", "BACKENDS", "DTYPES", "LAYOUTS", "MERGED_ORDERS", "OPERANDS", "ROUNDINGS",
    "CudaError", "Error", "InternalError", "InvalidArgument", "LibraryNotFound", "NotAvailable", "NotSupported",
    "OutOfMemory", "Plan", "WorkspaceTooSmall",
    "backends", "build_info", "can_implement", "glu", "glu_merged", "kernels", "models", "plan", "verify", "version",
]  # fmt: skip


def glu(
    x: _Any, gate: _Any, up: _Any, activation: str = "silu", *,
    bias_gate: _Any = None, bias_up: _Any = None, add_gate: _Any = None, add_up: _Any = None,
    pre_gate: _Any = None, pre_up: _Any = None, alpha: float = 1.0, limit: float = 0.0, up_offset: float = 0.0,
    rounding: str = "fp32", out: _Any = None, stream: _Any = None, backend: str = "auto", kernel: str = "",
) -> _Any:  # fmt: skip
    """act(x gate^T + bias_gate + add_gate) * (x up^T + bias_up + add_up), summed in fp32 and rounded once.

    x: [..., k] with any leading dimensions. Rows may have a stride; an x whose rows are not at one distance (a slice of
        a middle dimension, an expanded or transposed array) is copied for torch and NumPy, as their own products do,
        and refused for others.
    gate, up: [n, k], each with its own row stride; never copied. dtype and device as x.
    activation: "silu", "gelu_tanh", "gelu_erf", "relu", "sigmoid", "identity" or "swiglu".
    bias_gate, bias_up: [n], contiguous, either alone or both. dtype and device as x, as for all that follow but out.
    add_gate, add_up: [..., n], both or none (the result of an adapter, say): rows at one distance, the same in both, as
        in the halves of one [..., 2n].
    pre_gate, pre_up: arrays like the addends, but apart in memory, to which gate and up are written as they are before
        the activation and its clamps, rounded once. No gradients go through them.
    alpha, limit, up_offset: only for "swiglu", g' sigmoid(alpha g') * (u' + up_offset) with g' = min(g, limit) and u' =
        u clamped to -limit..limit; limit 0: no clamps. gpt-oss: 1.702, 7, 1.
    rounding: "fp32", or "unfused" to round each step to the type of the result as frameworks do: gate, up, act(gate),
        the product (docs/numerics.md).
    out: [..., n] on x's device, of any of the dtypes, rows at one distance; None: a new contiguous array of x's kind
        and dtype (torch, NumPy, CuPy; other kinds need out). It must not overlap an input.
    stream: CUDA stream as an integer or an object of torch, CuPy or cuda.core; None: the current one of torch or CuPy,
        else the default stream. The caller keeps the arrays alive until the stream has done the work.
    backend, kernel: "auto" and "" leave the choice to the planner; else names of backends() and kernels().
    Returns out. For torch tensors gradients, autocast and torch.compile are respected: tileglu.torch.
    Raises InvalidArgument (also a ValueError), NotSupported, NotAvailable, CudaError; what is written is then untouched.
    """
    how = activation, alpha, limit, up_offset, rounding, backend, kernel
    operands = None
    if not (bias_gate is bias_up is add_gate is add_up is pre_gate is pre_up is None):
        operands = bias_gate, bias_up, add_gate, add_up, pre_gate, pre_up
    framework = _known.get(type(x)) or _framework_of(x, "x")
    call = (_torch_call or _import_torch_call()) if framework is _TORCH else _glu
    return call(framework, x, gate, up, _SEPARATE, how, operands, out, stream)


def glu_merged(
    x: _Any, gate_up: _Any, activation: str = "silu", order: str = "gate_up", *,
    bias_gate: _Any = None, bias_up: _Any = None, add_gate: _Any = None, add_up: _Any = None,
    pre_gate: _Any = None, pre_up: _Any = None, alpha: float = 1.0, limit: float = 0.0, up_offset: float = 0.0,
    rounding: str = "fp32", out: _Any = None, stream: _Any = None, backend: str = "auto", kernel: str = "",
) -> _Any:  # fmt: skip
    """As glu, with one matrix gate_up [2n, k] of gate and up rows.

    order: "gate_up" (n gate rows first: Phi-3, vLLM, SGLang), "up_gate", "interleaved_1" (gate row, up row, ...),
        "interleaved_8" (8 gate rows, 8 up rows, ...; n a multiple of 8). It is that of the weights only: biases, addend
        and pre-activations are two arrays each, as for glu.
    """
    how = activation, alpha, limit, up_offset, rounding, backend, kernel
    operands = None
    if not (bias_gate is bias_up is add_gate is add_up is pre_gate is pre_up is None):
        operands = bias_gate, bias_up, add_gate, add_up, pre_gate, pre_up
    framework = _known.get(type(x)) or _framework_of(x, "x")
    call = (_torch_call or _import_torch_call()) if framework is _TORCH else _glu
    return call(framework, x, gate_up, None, _code(MERGED_ORDERS, order, "order"), how, operands, out, stream)


_torch_call = None  # of tileglu.torch, once that is imported
_SEPARATE = LAYOUTS["separate"]


def _import_torch_call():
    from . import torch  # noqa: F401 (which sets _torch_call)

    return _torch_call


def version() -> str:
    """Version of the loaded library, "major.minor.patch"."""
    number = _load().tileglu_version()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def build_info() -> str:
    """One line: version, commit, compiler, CUDA and CUTLASS versions of the loaded library."""
    return _load().tileglu_build_info().decode()


def models() -> list[dict[str, _Any]]:
    """The model shapes that the tool knows: a list of {"model", "n", "k", "activation", "layout", ...}."""
    from . import _tool

    return _tool.document("models")[1]["rows"]


def verify(
    *, backend: str = "auto", kernel: str = "", dtype: str = "bf16", activation: str = "silu",
    layout: str = "separate", m: int = 64, n: int = 256, k: int = 512,
) -> tuple[bool, dict[str, _Any]]:  # fmt: skip
    """Runs `tileglu verify`: kernels against an fp64 reference on random data, beside the unfused path.

    Returns (passed, document); the document is the tool's, with the errors in its "rows".
    """
    from . import _tool

    options = {"backend": backend, "dtype": dtype, "activation": activation, "layout": layout, "m": m, "n": n, "k": k}
    arguments = [f"--{name}={value}" for name, value in options.items()]
    if kernel:
        arguments.append(f"--kernel={kernel}")
    code, document = _tool.document("verify", *arguments)
    return code == 0, document


def __getattr__(name):
    if name == "__version__":
        return version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
