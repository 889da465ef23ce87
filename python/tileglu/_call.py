# SPDX-License-Identifier: Apache-2.0
"""A call on arrays: what they must be, the problem they make, the run.

Everywhere here `how` is (activation, alpha, limit, up_offset, rounding, backend, kernel), hashable, and `operands` None or
the six of _operands.py.
"""

from . import _formula, _operands, _plan
from ._arrays import framework_of, known
from ._errors import InvalidArgument, NotSupported
from ._library import Fields
from ._names import CUDA, ELEMENT_BYTES, LAYOUTS
from ._shapes import check_operand, check_result, matrix, not_rows, rows_of

_SEPARATE = LAYOUTS["separate"]


class _Call:
    """What has to be checked once for arrays of one key: the problem they make, and its plans by alignment."""

    __slots__ = ("fields", "shape", "names", "plans", "has_stream")

    def __init__(self, fields, shape, names):
        self.fields, self.shape, self.names = fields, shape, names
        self.plans = {}  # by the last four bits of all addresses together
        self.has_stream = fields.memory == CUDA

    def first_plan(self, low):
        """The plan for addresses whose last four bits together are `low`: what is promised of their alignment."""
        found = self.plans[low] = _plan.cached(aligned(self.fields, low & -low), *self.names)
        return found


_calls = {}  # by key
_MOST_CALLS = 4096  # a serving process sees a bounded set of sizes; beyond that the table starts anew


def glu(framework, x, gate, up, layout, how, operands, out, stream):
    """out = act(x gate^T) * (x up^T); `up` is None and `gate` the merged matrix in every layout but "separate".
    framework: that of x."""
    if (
        framework.key is not None
        and known.get(type(gate)) is framework
        and (up is None or known.get(type(up)) is framework)
        and (out is None or known.get(type(out)) is framework)
        and (operands is None or all(a is None or known.get(type(a)) is framework for a in operands))
    ):
        return glu_of_kind(framework, x, gate, up, layout, how, operands, out, stream)
    return _first(framework, x, gate, up, layout, how, operands, out, _stream(framework, x, stream), None)


def glu_of_kind(framework, x, gate, up, layout, how, operands, out, stream):
    """glu for arrays that are all of one framework with keys. Every warm call of NumPy comes through here."""
    keys, addresses = (None, None) if operands is None else framework.operands(operands)
    key = framework.key(x, gate, up, out), layout, how, keys
    call = _calls.get(key)
    if call is None:
        return _first(framework, x, gate, up, layout, how, operands, out, _stream(framework, x, stream), key)
    return run(call, framework, x, gate, up, out, stream, addresses)


def call_of(framework, x, gate, up, layout, how, out):
    """The _Call of glu_of_kind for the same arrays without operands; None if there is none."""
    return _calls.get((framework.key(x, gate, up, out), layout, how, None))


def run(call, framework, x, gate, up, out, stream, operands=None):
    """Runs a _Call on arrays of its key; operands: the addresses of the six, or None."""
    if call.has_stream or stream is not None:
        stream = _stream(framework, x, stream)
    if out is None:
        out = framework.empty(call.shape, x)
    a, g, u, y = framework.addresses(x, gate, up, out)
    low = (a | g | u | y) & 15
    (call.plans.get(low) or call.first_plan(low))._launch(framework, x, a, g, u, y, stream or 0, operands)
    return out


def _stream(framework, x, stream):
    """The CUDA stream of a call, as an integer."""
    if stream is not None:
        return stream_number(stream)
    return 0 if framework.stream is None else framework.stream(x)


def _first(framework, x, gate, up, layout, how, operands, out, stream, key):
    """glu for arrays that are read: of a new key, or of kinds that have none (key is None)."""
    a = framework.read(x, "x", stream)
    if _rows(a) is None:
        if framework.compact is None:
            raise InvalidArgument(not_rows("x", a) + "; copy it first")
        return glu(framework, framework.compact(x), gate, up, layout, how, operands, out, stream)
    g, u, y = _read(("gate", "up", "out"), (gate, up, out), stream)
    extra = operands and _read(_operands.NAMES, operands, stream)
    call = _Call(*_problem(a, g, u, y, extra, layout, _formula.fields_of(*how[:5])), how[5:])
    if key is not None:
        if len(_calls) >= _MOST_CALLS:
            _calls.clear()
        _calls[key] = call
    if out is None:
        if framework.empty is None:
            raise NotSupported(f"tileglu cannot make an array like x, a {type(x).__qualname__}: pass out=")
        out = framework.empty(call.shape, x)
        y = framework.read(out, "out", stream)
    addresses = _addresses((a, g, u, y))
    low = (addresses[0] | addresses[1] | addresses[2] | addresses[3]) & 15
    call.first_plan(low)._launch(framework, x, *addresses, stream, extra and _addresses(extra))
    return out


def run_plan(plan, x, gate, up, operands, out, stream, workspace):
    """See Plan.run."""
    of_x = framework_of(x, "x")
    stream = _stream(of_x, x, stream)
    a = of_x.read(x, "x", stream)
    if _rows(a) is None:
        raise InvalidArgument(not_rows("x", a))
    g, u, y = _read(("gate", "up", "out"), (gate, up, out), stream)
    extra = operands and _read(_operands.NAMES, operands, stream)
    formula = {name: getattr(plan.fields, name) for name in ("activation", "alpha", "limit", "up_offset", "rounding")}
    _plan.same_fields(plan, _problem(a, g, u, y, extra, plan.fields.layout, formula)[0])
    address, size = workspace or (0, plan.workspace)
    if size < plan.workspace:
        raise InvalidArgument(f"workspace has {size} bytes; this plan needs {plan.workspace}")
    plan._launch(of_x, x, *_addresses((a, g, u, y)), stream, extra and _addresses(extra), address)
    return out


def aligned(fields, alignment):
    """The fields with an alignment in bytes (0: 16); InvalidArgument if elements themselves are not aligned."""
    if alignment and alignment < ELEMENT_BYTES[fields.dtype]:
        raise InvalidArgument(f"an array is aligned to {alignment} bytes, less than one element")
    return fields._replace(alignment=alignment)


def _read(names, arrays, stream):
    """The Array of each, None for None."""
    return tuple(
        None if array is None else framework_of(array, name).read(array, name, stream)
        for name, array in zip(names, arrays)
    )


def _addresses(arrays):
    return tuple(0 if array is None else array.pointer for array in arrays)


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


def _problem(a, g, u, y, extra, layout, formula):
    """(Fields, shape of the result) of operands, checked against each other.

    y may be None: contiguous, of x's dtype. extra: the Arrays of _operands.py, or None. The alignment is left at 0.
    """
    m, lda = _rows(a)
    n, ld_gate, ld_up = _weights(a, g, u, layout)
    shape = (*a.shape[:-1], n)
    dtype_y, ldy = (a.dtype, 0) if y is None else (y.dtype, check_result(a, y, "out", shape, written=True))
    return Fields(
        dtype=a.dtype, dtype_y=dtype_y, layout=layout, memory=a.memory, device=a.device, alignment=0, m=m, n=n,
        k=a.shape[-1], lda=lda, ld_gate=ld_gate, ld_up=ld_up, ldy=ldy, **formula,
        **(_operands.fields_of(a, extra, shape) if extra else {}),
    ), shape  # fmt: skip


def _weights(a, g, u, layout):
    """(n, row stride of gate, row stride of up), checked against x."""
    merged = layout != _SEPARATE
    name = "gate_up" if merged else "gate"
    rows, ld_gate = matrix(g, name, "[2n, k]" if merged else "[n, k]")
    check_operand(a, g, name)
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
    check_operand(a, u, "up")
    if u.shape != g.shape:
        raise InvalidArgument(f"up has shape {list(u.shape)}, gate has {list(g.shape)}; they must be equal")
    return rows, ld_gate, ld_up
