# SPDX-License-Identifier: Apache-2.0
"""torch.compile: as people call it, with all its tuning, and with the formulation that makes fusing easiest."""

from . import Prepared, eager

GATE_UP_PAIRS = 1  # rows of gate and of up in turn


def contender(formula, mode=None, options=None, layout="separate"):
    """formula(F, case) -> function of the index of a set, without the index: (function, arguments of a set)."""

    def prepare(case):
        F = eager.functional(case)
        torch = case.arrays.torch
        from torch._inductor import metrics

        metrics.reset()
        function, arguments = formula(F, case)
        # CUDA graphs are left to the measurement, so that every contender has them or none.
        compiled = torch.compile(function, fullgraph=True, dynamic=False, mode=mode, options=options)
        with torch.no_grad():
            compiled(*arguments(0))
        case.arrays.synchronize()
        config = mode or (", ".join(f"{key}={value}" for key, value in options.items()) if options else "default")
        return Prepared(
            _call(torch, compiled, arguments), config, layout, generated_kernels=metrics.generated_kernel_count
        )

    return prepare


def _call(torch, compiled, arguments):
    def call(index):
        with torch.no_grad():
            return compiled(*arguments(index))

    return call


def _as_model_code(F, case):
    return (lambda x, gate, up: eager.two_linears(F, x, gate, up)), lambda i: (
        case.sets[i].x, case.sets[i].gate, case.sets[i].up,
    )  # fmt: skip


def _merged(F, case):
    return (lambda x, gate_up: eager.one_linear(F, x, gate_up)), lambda i: (case.sets[i].x, case.sets[i].gate_up)


def _pairs(F, case):
    """One product whose neighbouring columns are gate and up of one output, so that an epilogue could take them."""
    weights = case.interleaved(GATE_UP_PAIRS)

    def function(x, pairs):
        product = F.linear(x, pairs)
        both = product.view(*product.shape[:-1], -1, 2)
        return F.silu(both[..., 0]) * both[..., 1]

    return function, lambda i: (case.sets[i].x, weights[i])


MAX_AUTOTUNE = "max-autotune-no-cudagraphs"
HINTS = {"max_autotune": True, "epilogue_fusion": True, "max_autotune_gemm_backends": "TRITON"}
CONTENDERS = {
    "torch_compile": contender(_as_model_code),
    "torch_compile_merged": contender(_merged, layout="gate_up"),
    "torch_compile_max_autotune": contender(_as_model_code, mode=MAX_AUTOTUNE),
    "torch_compile_hints": contender(_pairs, options=HINTS, layout="interleaved_1"),
}
