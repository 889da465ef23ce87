# SPDX-License-Identifier: Apache-2.0
"""A call on arrays: what they must be, the problem they make, the run."""

from . import _plan
from ._arrays import framework_of
from ._errors import InvalidArgument, NotSupported
from ._names import ACTIVATIONS, CUDA, DTYPES, ELEMENT_BYTES, LAYOUTS, MEMORIES, code, name_of
from ._shapes import matrix, rows_of

_SEPARATE = LAYOUTS["separate"]


class _Call:
    """What has to be checked once for arrays of one signature: the problem they make, and its plans by alignment."""

    __slots__ = ("fields", "shape", "names", "plans")

    def __init__(self, fields, shape, names):
        self.fields, self.shape, self.names = fields, shape, names
        self.plans = {}

    def plan(self, addresses):
        """The plan for addresses given as their bitwise or. What is promised of their alignment is at most 16 bytes."""
        alignment = 0 if not addresses & 15 else addresses & -addresses
        found = self.plans.get(alignment)
        if found is None:
            found = self.plans[alignment] = _plan.cached(aligned(self.fields, alignment), *self.names)
        return found


_calls = {}  # by signature
_MOST_CALLS = 4096  # a serving process sees a bounded set of sizes; beyond that the table starts anew


def glu(x, gate, up, layout, activation, out, stream, backend, kernel):
    """out = act(x gate^T) * (x up^T); `up` is None and `gate` the merged matrix in every layout but "separate"."""
    of_x, of_gate = framework_of(x, "x"), framework_of(gate, "gate")
    of_up = of_gate if up is None else framework_of(up, "up")
    of_out = of_x if out is None else framework_of(out, "out")
    if type(stream) is not int:
        stream = _stream(stream, of_x, x)
    key = call = None
    if of_x.signature and of_gate.signature and of_up.signature and of_out.signature:
        key = (
            of_x.signature(x), of_gate.signature(gate), up is not None and of_up.signature(up),
            out is not None and of_out.signature(out), layout, activation, backend, kernel,
        )  # fmt: skip
        call = _calls.get(key)
    if call is None:
        a = of_x.read(x, "x", stream)
        if _rows(a) is None:
            if of_x.compact is None:
                raise InvalidArgument(_not_rows("x", a) + "; copy it first")
            return glu(of_x.compact(x), gate, up, layout, activation, out, stream, backend, kernel)
        g, u, y = _read(gate, up, out, stream)
        activation = code(ACTIVATIONS, activation, "activation")
        call = _Call(*_problem(a, g, u, y, layout, activation), (backend, kernel))
        if key is not None:
            if len(_calls) >= _MOST_CALLS:
                _calls.clear()
            _calls[key] = call
    if out is None:
        if of_x.empty is None:
            raise NotSupported(f"tileglu cannot make an array like x, a {type(x).__qualname__}: pass out=")
        out = of_x.empty(call.shape, x)
    _run(call.plan, of_x, x, of_gate.pointer(gate), 0 if up is None else of_up.pointer(up), of_out.pointer(out), stream)
    return out


def _run(plan_for, of_x, x, gate, up, y, stream, workspace=0):
    a = of_x.pointer(x)
    plan = plan_for(a | gate | up | y)
    owner = None  # of the workspace, until the work is enqueued
    if plan.workspace and not workspace:
        owner, workspace = _plan.scratch(plan, of_x, x, "x")
    plan.launch(a, gate, up, y, stream, workspace)


def run_plan(plan, x, gate, up, out, stream, workspace):
    """See Plan.run."""
    of_x = framework_of(x, "x")
    stream = _stream(stream, of_x, x)
    a = of_x.read(x, "x", stream)
    if _rows(a) is None:
        raise InvalidArgument(_not_rows("x", a))
    g, u, y = _read(gate, up, out, stream)
    layout, activation = plan.fields[3], plan.fields[2]
    fields, _ = _problem(a, g, u, y, layout, activation)
    _plan.same_fields(plan, fields)
    address, size = workspace or (0, plan.workspace)
    if size < plan.workspace:
        raise InvalidArgument(f"workspace has {size} bytes; this plan needs {plan.workspace}")
    _run(lambda _: plan, of_x, x, g.pointer, u.pointer if u else 0, y.pointer, stream, address)
    return out


def aligned(fields, alignment):
    """The fields with an alignment in bytes (0: 16); InvalidArgument if elements themselves are not aligned."""
    if alignment and alignment < ELEMENT_BYTES[fields[0]]:
        raise InvalidArgument(f"an array is aligned to {alignment} bytes, less than one element")
    return (*fields[:6], alignment, *fields[7:])


def _read(gate, up, out, stream):
    return tuple(
        None if array is None else framework_of(array, name).read(array, name, stream)
        for array, name in ((gate, "gate"), (up, "up"), (out, "out"))
    )


def _stream(stream, framework, x):
    """The CUDA stream of a call as an integer: the given one, or the framework's current one."""
    if stream is None:
        return framework.stream(x) if framework.stream else 0
    return stream_number(stream)


def stream_number(stream):
    """A CUDA stream as an integer: given as one, or as an object of torch, CuPy or cuda.core."""
    if isinstance(stream, int):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for attribute in ("cuda_stream", "ptr"):
        if hasattr(stream, attribute):
            return int(getattr(stream, attribute))
    raise InvalidArgument(
        f"stream is a {type(stream).__qualname__}; it must be an integer or a stream of torch or CuPy"
    )


def _rows(a):
    if not a.shape:
        raise InvalidArgument("x has no dimension; it must be [..., k]")
    return rows_of(a.shape, a.strides)


def _not_rows(name, array):
    return (
        f"{name} of shape {list(array.shape)} has strides {list(array.strides)} (elements), which is not one matrix of "
        "contiguous rows at one distance"
    )


def _problem(a, g, u, y, layout, activation):
    """(fields of tileglu_problem after struct_size, shape of the result) of operands, checked against each other.

    y may be None: contiguous, of x's dtype. The alignment is left at 0.
    """
    rows, lda = _rows(a)
    n, ld_gate, ld_up = _weights(a, g, u, layout)
    shape = (*a.shape[:-1], n)
    dtype_y, ldy = (a.dtype, 0) if y is None else (y.dtype, _out_stride(a, y, shape))
    sizes = (rows, n, a.shape[-1])
    return (a.dtype, dtype_y, activation, layout, a.memory, a.device, 0, *sizes, lda, ld_gate, ld_up, ldy), shape


def _weights(a, g, u, layout):
    """(n, row stride of gate, row stride of up), checked against x."""
    merged = layout != _SEPARATE
    name = "gate_up" if merged else "gate"
    rows, ld_gate = matrix(g, name, "[2n, k]" if merged else "[n, k]")
    _check_operand(a, g, name)
    if g.shape[1] != a.shape[-1]:
        raise InvalidArgument(f"{name} has k={g.shape[1]} columns, x has k={a.shape[-1]}")
    if merged:
        if u is not None:
            raise InvalidArgument("up must be None with merged weights")
        if rows % 2:
            raise InvalidArgument(f"gate_up has {rows} rows; it must have 2n, n for gate and n for up")
        return rows // 2, ld_gate, 0
    if u is None:
        raise InvalidArgument("up is None; merged weights go to glu_merged")
    _, ld_up = matrix(u, "up", "[n, k]")
    _check_operand(a, u, "up")
    if u.shape != g.shape:
        raise InvalidArgument(f"up has shape {list(u.shape)}, gate has {list(g.shape)}; they must be equal")
    return rows, ld_gate, ld_up


def _check_operand(a, array, name):
    if array.dtype != a.dtype:
        raise InvalidArgument(
            f"{name} is {name_of(DTYPES, array.dtype)} and x is {name_of(DTYPES, a.dtype)}; they must be of one dtype"
        )
    _check_place(a, array, name)


def _check_place(a, array, name):
    if array.memory != a.memory or array.device != a.device:
        raise InvalidArgument(f"{name} lies on {_place(array)} and x on {_place(a)}; they must be on one device")


def _place(array):
    return f"cuda:{array.device}" if array.memory == CUDA else name_of(MEMORIES, array.memory)


def _out_stride(a, y, shape):
    """Row stride of out, checked."""
    if tuple(y.shape) != shape:
        raise InvalidArgument(f"out has shape {list(y.shape)}; the result is {list(shape)}")
    if not y.writable:
        raise InvalidArgument("out is read-only")
    _check_place(a, y, "out")
    found = rows_of(y.shape, y.strides)
    if found is None:
        raise InvalidArgument(_not_rows("out", y))
    return found[1]
