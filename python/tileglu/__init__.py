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
from ._names import ACTIVATIONS, BACKENDS, DTYPES, LAYOUTS, MERGED_ORDERS
from ._names import code as _code
from ._plan import Plan, backends, can_implement, kernels, plan

__all__ = [
    "ACTIVATIONS", "BACKENDS", "DTYPES", "LAYOUTS", "MERGED_ORDERS",
    "CudaError", "Error", "InternalError", "InvalidArgument", "LibraryNotFound", "NotAvailable", "NotSupported",
    "OutOfMemory", "Plan", "WorkspaceTooSmall",
    "backends", "build_info", "can_implement", "glu", "glu_merged", "kernels", "models", "plan", "verify", "version",
]  # fmt: skip


def glu(
    x: _Any, gate: _Any, up: _Any, activation: str = "silu",
    *, out: _Any = None, stream: _Any = None, backend: str = "auto", kernel: str = "",
) -> _Any:  # fmt: skip
    """act(x gate^T) * (x up^T), summed in fp32 and rounded once.

    x: [..., k] with any leading dimensions. Rows may have a stride; an x whose rows are not at one distance (a slice of
        a middle dimension, an expanded or transposed array) is copied for torch and NumPy, as their own products do,
        and refused for others.
    gate, up: [n, k], each with its own row stride; never copied. dtype and device as x.
    activation: "silu", "gelu_tanh", "gelu_erf", "relu", "sigmoid" or "identity".
    out: [..., n] on x's device, of any of the dtypes, rows at one distance; None: a new contiguous array of x's kind
        and dtype (torch, NumPy, CuPy; other kinds need out). It must not overlap an input.
    stream: CUDA stream as an integer or an object of torch, CuPy or cuda.core; None: the current one of torch or CuPy,
        else the default stream. The caller keeps the arrays alive until the stream has done the work.
    backend, kernel: "auto" and "" leave the choice to the planner; else names of backends() and kernels().
    Returns out. torch tensors go through tileglu.torch.glu: gradients, autocast and torch.compile are respected.
    Raises InvalidArgument (also a ValueError), NotSupported, NotAvailable, CudaError; `out` is then untouched.
    """
    framework = _known.get(type(x)) or _framework_of(x, "x")
    if framework is _TORCH:
        return (_torch_module or _torch()).glu(x, gate, up, activation, out=out, stream=stream, backend=backend, kernel=kernel)
    return _glu(framework, x, gate, up, _SEPARATE, activation, out, stream, backend, kernel)


def glu_merged(
    x: _Any, gate_up: _Any, activation: str = "silu", order: str = "gate_up",
    *, out: _Any = None, stream: _Any = None, backend: str = "auto", kernel: str = "",
) -> _Any:  # fmt: skip
    """As glu, with one matrix gate_up [2n, k] of gate and up rows.

    order: "gate_up" (n gate rows first: Phi-3, vLLM, SGLang), "up_gate", "interleaved_1" (gate row, up row, ...),
        "interleaved_8" (8 gate rows, 8 up rows, ...; n a multiple of 8).
    """
    layout = _code(MERGED_ORDERS, order, "order")
    framework = _known.get(type(x)) or _framework_of(x, "x")
    if framework is _TORCH:
        return (_torch_module or _torch()).glu_merged(
            x, gate_up, activation, order, out=out, stream=stream, backend=backend, kernel=kernel
        )
    return _glu(framework, x, gate_up, None, layout, activation, out, stream, backend, kernel)


_torch_module = None  # tileglu.torch, once it is imported
_SEPARATE = LAYOUTS["separate"]


def _torch():
    from . import torch  # which sets _torch_module

    return torch


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
