# SPDX-License-Identifier: Apache-2.0
"""A call on arrays: what they must be, the problem they make, the run."""

from . import _plan
from ._arrays import framework_of, known
from ._errors import InvalidArgument, NotSupported
from ._names import ACTIVATIONS, CUDA, DTYPES, ELEMENT_BYTES, LAYOUTS, MEMORIES, code, name_of
from ._shapes import matrix, rows_of

_SEPARATE = LAYOUTS["separate"]


class _Call:
    """What has to be checked once for arrays of one key: the problem they make, and its plans by alignment."""

    __slots__ = ("fields", "shape", "names", "plans")

    def __init__(self, fields, shape, names):
        self.fields, self.shape, self.names = fields, shape, names
        self.plans = {}  # by the last four bits of all addresses together

    def first_plan(self, low):
        """The plan for addresses whose last four bits together are `low`: what is promised of their alignment."""
        found = self.plans[low] = _plan.cached(aligned(self.fields, low & -low), *self.names)
        return found


_calls = {}  # by key
_MOST_CALLS = 4096  # a serving process sees a bounded set of sizes; beyond that the table starts anew


def glu(framework, x, gate, up, layout, activation, out, stream, backend, kernel):
    """out = act(x gate^T) * (x up^T); `up` is None and `gate` the merged matrix in every layout but "separate".
    framework: that of x."""
    if (
        framework.key is not None
        and known.get(type(gate)) is framework
        and (up is None or known.get(type(up)) is framework)
        and (out is None or known.get(type(out)) is framework)
    ):
        return glu_of_kind(framework, x, gate, up, layout, activation, out, stream, backend, kernel)
    return _first(framework, x, gate, up, layout, activation, out, _stream(framework, x, stream), backend, kernel, None)


def glu_of_kind(framework, x, gate, up, layout, activation, out, stream, backend, kernel):
    """glu for arrays that are all of one framework with keys. Every warm call of torch and NumPy comes through here."""
    if stream is not None or framework.stream is not None:
        stream = _stream(framework, x, stream)
    else:
        stream = 0
    key = framework.key(x, gate, up, out), layout, activation, backend, kernel
    call = _calls.get(key)
    if call is None:
        return _first(framework, x, gate, up, layout, activation, out, stream, backend, kernel, key)
    if out is None:
        out = framework.empty(call.shape, x)
    a, g, u, y = framework.addresses(x, gate, up, out)
    low = (a | g | u | y) & 15
    (call.plans.get(low) or call.first_plan(low))._launch(framework, x, a, g, u, y, stream)
    return out


def _stream(framework, x, stream):
    """The CUDA stream of a call, as an integer."""
    if stream is not None:
        return stream_number(stream)
    return 0 if framework.stream is None else framework.stream(x)


def _first(framework, x, gate, up, layout, activation, out, stream, backend, kernel, key):
    """glu for arrays that are read: of a new key, or of kinds that have none (key is None)."""
    a = framework.read(x, "x", stream)
    if _rows(a) is None:
        if framework.compact is None:
            raise InvalidArgument(_not_rows("x", a) + "; copy it first")
        return glu(framework, framework.compact(x), gate, up, layout, activation, out, stream, backend, kernel)
    g, u, y = _read(gate, up, out, stream)
    call = _Call(*_problem(a, g, u, y, layout, code(ACTIVATIONS, activation, "activation")), (backend, kernel))
    if key is not None:
        if len(_calls) >= _MOST_CALLS:
            _calls.clear()
        _calls[key] = call
    if out is None:
        if framework.empty is None:
            raise NotSupported(f"tileglu cannot make an array like x, a {type(x).__qualname__}: pass out=")
        out = framework.empty(call.shape, x)
        y = framework.read(out, "out", stream)
    a, g, u, y = a.pointer, g.pointer, 0 if u is None else u.pointer, y.pointer
    call.first_plan((a | g | u | y) & 15)._launch(framework, x, a, g, u, y, stream)
    return out


def run_plan(plan, x, gate, up, out, stream, workspace):
    """See Plan.run."""
    of_x = framework_of(x, "x")
    stream = _stream(of_x, x, stream)
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
    plan._launch(of_x, x, a.pointer, g.pointer, 0 if u is None else u.pointer, y.pointer, stream, address)
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
