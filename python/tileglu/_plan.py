# SPDX-License-Identifier: Apache-2.0
"""Plans of the C ABI, made by name or by the arrays of a call, and the cache of the latter."""

from __future__ import annotations

import ctypes
from collections.abc import Collection
from typing import Any

from . import _formula, _library, _operands
from ._errors import InvalidArgument, NotSupported
from ._names import ACTIVATIONS, BACKENDS, DTYPES, HOST, LAYOUTS, MEMORIES, OPERANDS, ROUNDINGS, code, name_of

_state = _library.ThreadState()
_pack_args, _ARGS_START = _library.pack_args, _library.ARGS_START
_pack_operands, _OPERANDS_START = _library.pack_operands, _library.OPERANDS_START


class Plan:
    """A problem with the kernel chosen for it. Immutable; may be run by many threads at once.

    Made by tileglu.plan(). `workspace` is what run() needs, in bytes; on host memory and for torch and CuPy arrays it
    is found by itself. `backend` and `kernel` are names, `describe()` says why others were passed over.
    """

    __slots__ = ("_pointer", "_destroy", "_run", "fields", "workspace")

    def __init__(self, fields, options):
        """fields: a _library.Fields; options: a tileglu_options."""
        self._destroy = None
        library = _library.library()
        pointer = ctypes.c_void_p()
        _library.check(library.tileglu_plan_create(_problem(fields), options, ctypes.byref(pointer)))
        self._pointer, self._destroy, self._run = pointer, library.tileglu_plan_destroy, library.tileglu_plan_run
        self.fields = fields
        self.workspace = library.tileglu_plan_workspace(pointer)

    def __del__(self):
        if self._destroy is not None:
            self._destroy(self._pointer)

    def __repr__(self):
        sizes = ", ".join(f"{name}={value}" for name, value in ((name, getattr(self.fields, name)) for name in "mnk"))
        return f"<tileglu.Plan {sizes}: {self.backend} {self.kernel}>"

    def describe(self) -> str:
        """Backend, kernel configuration, and why the backends and kernels before it were passed over."""
        return _library.library().tileglu_plan_describe(self._pointer).decode()

    @property
    def backend(self) -> str:
        """Name: "sm90", "cublas", "cpu", or "none" if there is nothing to compute."""
        return _library.library().tileglu_plan_backend(self._pointer).decode()

    @property
    def kernel(self) -> str:
        """Name of the kernel configuration."""
        return _library.library().tileglu_plan_kernel(self._pointer).decode()

    def run(
        self, x: Any, gate: Any, up: Any = None, *, out: Any, bias_gate: Any = None, bias_up: Any = None,
        add_gate: Any = None, add_up: Any = None, pre_gate: Any = None, pre_up: Any = None, stream: Any = None,
        workspace: tuple[int, int] | None = None,
    ) -> Any:  # fmt: skip
        """Runs on arrays of the plan's own sizes, dtypes and row strides, and returns `out`.

        x [..., k]; gate [n, k] and up [n, k], or one merged gate [2n, k] without up; out [..., n]. `stream` and the
        biases, addend and pre-activations, which are given exactly if the plan has them, as in glu().
        `workspace`: (address, bytes) of 256-byte aligned memory on the operands' device, where it cannot be found by
        itself. InvalidArgument if an array differs from the plan; nothing is ever copied.
        """
        from . import _call

        operands = _operands.given(bias_gate, bias_up, add_gate, add_up, pre_gate, pre_up)
        return _call.run_plan(self, x, gate, up, operands, out, stream, workspace)

    def _launch(self, framework, x, a, gate, up, y, stream, operands=None, workspace=0):
        """Runs on addresses. operands: the six of _operands.py, 0 for None. workspace: address of self.workspace bytes;
        0: it is made as x's framework does."""
        size = self.workspace
        if size and not workspace:
            if self.fields.memory == HOST:
                workspace = _state.host_workspace(size)
            else:
                _owner, workspace = _scratch(self, framework, x)  # owned until the work is enqueued
        if operands is None:
            args, reference = _state.plain_args
        else:
            args, reference = _state.args
            _pack_operands(args, _OPERANDS_START, *operands)
        _pack_args(args, _ARGS_START, a, gate, up, y, workspace, size, stream)
        status = self._run(self._pointer, reference)
        if status:
            _library.check(status)


def _problem(fields):
    problem = _library.Problem()
    for name, value in fields._asdict().items():
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise InvalidArgument(f"{name}={value} does not fit into 64 bits")
        setattr(problem, name, value)
    return problem


PREFETCH_WEIGHTS, BATCH_INVARIANT = 1, 2  # tileglu_flag


def _options(backend, kernel, prefetch_weights=False, batch_invariant=False):
    flags = PREFETCH_WEIGHTS * bool(prefetch_weights) | BATCH_INVARIANT * bool(batch_invariant)
    name = str(kernel or "").encode()
    return _library.Options(backend=code(BACKENDS, backend, "backend"), kernel=name, flags=flags)


# --- For the arrays of a call -----------------------------------------------------------------------------------------

_cache = {}
_CACHE_SIZE = 4096  # a serving process sees a bounded set of m; beyond that the cache starts anew


def cached(fields, backend, kernel):
    """The plan for the fields of a tileglu_problem. Refusals are not cached, since what was missing may appear."""
    key = (fields, backend, kernel)
    plan = _cache.get(key)
    if plan is None:
        plan = Plan(fields, _options(backend, kernel))
        if len(_cache) >= _CACHE_SIZE:
            _cache.clear()
        _cache[key] = plan
    return plan


# --- By name ----------------------------------------------------------------------------------------------------------


def plan(
    m: int, n: int, k: int, *, dtype: str = "bf16", activation: str = "silu", layout: str = "separate",
    alpha: float = 1.0, limit: float = 0.0, up_offset: float = 0.0, rounding: str = "fp32",
    operands: Collection[str] = (), memory: str = "cuda", device: int = 0, out_dtype: str | None = None,
    alignment: int = 0, lda: int = 0, ld_gate: int = 0, ld_up: int = 0, ldy: int = 0, ld_add: int = 0,
    ld_pre: int = 0, backend: str = "auto", kernel: str = "", prefetch_weights: bool = False,
    batch_invariant: bool = False,
) -> Plan:  # fmt: skip
    """Chooses the kernel for a problem; see tileglu.Plan. Needs no arrays and launches nothing.

    m tokens, n columns of the result, k columns of x. dtype and out_dtype: "bf16", "fp16", "fp32" (out_dtype None: as
    dtype). activation, alpha, limit, up_offset, rounding, backend, kernel: as in glu().
    operands: which of "bias_gate", "bias_up", "addend" (add_gate and add_up) and "preactivations" (pre_gate and pre_up)
    a run takes. memory: "cuda" or "host"; device: CUDA ordinal. alignment: bytes that every address is a multiple of (0:
    16). lda, ld_gate, ld_up, ldy, ld_add, ld_pre: row strides in elements (0: contiguous).
    prefetch_weights: the kernel may read the weights before the kernel ahead of it in the stream has ended.
    batch_invariant: the bits of a row depend on nothing but the row and the weights (backend sm90 only).
    Raises InvalidArgument, NotSupported or NotAvailable with the reason.
    """
    return Plan(*_request(**locals()))


def can_implement(
    m: int, n: int, k: int, *, dtype: str = "bf16", activation: str = "silu", layout: str = "separate",
    alpha: float = 1.0, limit: float = 0.0, up_offset: float = 0.0, rounding: str = "fp32",
    operands: Collection[str] = (), memory: str = "cuda", device: int = 0, out_dtype: str | None = None,
    alignment: int = 0, lda: int = 0, ld_gate: int = 0, ld_up: int = 0, ldy: int = 0, ld_add: int = 0,
    ld_pre: int = 0, backend: str = "auto", kernel: str = "", prefetch_weights: bool = False,
    batch_invariant: bool = False,
) -> tuple[bool, str]:  # fmt: skip
    """(True, "") if plan() with the same arguments would succeed, else (False, reason). InvalidArgument for wrong
    names."""
    fields, options = _request(**locals())
    reason = ctypes.create_string_buffer(4096)
    status = _library.library().tileglu_can_implement(_problem(fields), options, reason, len(reason))
    return status == 0, reason.value.decode("utf-8", "replace")


def _request(
    dtype, activation, layout, alpha, limit, up_offset, rounding, operands, memory, out_dtype, backend, kernel,
    prefetch_weights, batch_invariant, **numbers,
):  # fmt: skip
    """(Fields, options) of the arguments of plan(); numbers are fields already."""
    if isinstance(operands, str):
        raise InvalidArgument(f"operands={operands!r} is one text; it must be a collection of names")
    separate = LAYOUTS["separate"]
    fields = _library.Fields(
        dtype=code(DTYPES, dtype, "dtype"),
        dtype_y=0 if out_dtype is None else code(DTYPES, out_dtype, "out_dtype"),
        layout=code(LAYOUTS, layout, "layout"),
        memory=code(MEMORIES, memory, "memory"),
        operands=sum({code(OPERANDS, name, "operands") for name in operands}),
        layout_add=separate if "addend" in operands else 0,
        layout_pre=separate if "preactivations" in operands else 0,
        **_formula.fields_of(activation, alpha, limit, up_offset, rounding),
        **numbers,
    )
    return fields, _options(backend, kernel, prefetch_weights, batch_invariant)


# --- Kernels ----------------------------------------------------------------------------------------------------------


def backends() -> dict[str, str | None]:
    """{backend: None if it can run on this machine, else the reason why not}."""
    library = _library.library()
    return {
        name: None if library.tileglu_backend_available(number) == 0 else library.tileglu_last_error().decode()
        for name, number in BACKENDS.items()
        if name != "auto"
    }


def kernels(backend: str) -> list[str]:
    """Names that `kernel=` accepts together with this backend."""
    library, number = _library.library(), code(BACKENDS, backend, "backend")
    names = []
    while (name := library.tileglu_kernel_name(number, len(names))) is not None:
        names.append(name.decode())
    return names


def _scratch(plan, framework, x):
    """(owner, address) of the plan's workspace on the CUDA device of x."""
    if framework.scratch is None:
        raise NotSupported(
            f"the plan ({plan.backend} {plan.kernel}) needs {plan.workspace} bytes of workspace, and tileglu cannot "
            f"allocate for x, a {type(x).__qualname__}: use tileglu.plan(...).run(..., workspace=...)"
        )
    return framework.scratch(plan.workspace, x)


_TABLES = {
    "dtype": DTYPES, "dtype_y": DTYPES, "activation": ACTIVATIONS, "layout": LAYOUTS, "memory": MEMORIES,
    "rounding": ROUNDINGS,
}  # fmt: skip


def same_fields(plan, fields):
    """InvalidArgument if arrays make another problem than the plan is for. The library checks the alignment itself."""
    mine = _resolved(fields)
    for name, wanted in _resolved(plan.fields).items():
        found = mine[name]
        if found != wanted:
            if name in _TABLES:
                wanted, found = name_of(_TABLES[name], wanted), name_of(_TABLES[name], found)
            elif name == "operands":
                wanted, found = _operand_names(wanted), _operand_names(found)
            raise InvalidArgument(f"the arrays have {name}={found}; this plan was made for {name}={wanted}")


def _operand_names(bits):
    return [name for name, bit in OPERANDS.items() if bits & bit]


def _resolved(fields):
    """By name, without the alignment and with the defaults filled in as the library does; a row stride of at most one
    row is 0."""
    merged = fields.layout != LAYOUTS["separate"]
    m, n, k = fields.m, fields.n, fields.k
    matrices = {
        "lda": (m, k), "ld_gate": (2 * n if merged else n, k), "ld_up": (0 if merged else n, k), "ldy": (m, n),
        "ld_add": (m, n if fields.layout_add else 0), "ld_pre": (m, n if fields.layout_pre else 0),
    }  # fmt: skip
    strides = {name: 0 if rows <= 1 else getattr(fields, name) or columns for name, (rows, columns) in matrices.items()}
    device = fields.device if fields.memory != HOST else 0
    found = {**fields._asdict(), **strides, "dtype_y": fields.dtype_y or fields.dtype, "device": device}
    del found["alignment"]
    return found
