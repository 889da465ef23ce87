# SPDX-License-Identifier: Apache-2.0
"""Where the operands live: torch tensors on a GPU or on the host, or NumPy arrays where torch is not installed. What
the rest of the study does with arrays is here, once for each of the two; contenders get the arrays themselves."""

import os

HOST_CACHE_UNKNOWN = 32 << 20


class Unavailable(Exception):
    """The device that was asked for is not here."""


class TorchArrays:
    """device: "cuda" or "cpu"."""

    name = "torch"

    def __init__(self, torch, device):
        self.torch, self.device = torch, torch.device(device)
        self.memory = "cuda" if device == "cuda" else "host"
        self.dtypes = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}

    def seed(self, seed):
        self.torch.manual_seed(seed)

    def random(self, rows, columns, kind="normal"):
        """fp32 values of a kind of data.DISTRIBUTIONS, before any rounding."""
        torch, shape = self.torch, (rows, columns)
        if kind == "uniform":
            return torch.rand(shape, device=self.device)
        if kind == "heavy_tailed":  # Student's t with 3 degrees of freedom
            squares = sum(torch.randn(shape, device=self.device).square_() for _ in range(3))
            return torch.randn(shape, device=self.device) / (squares / 3).sqrt_()
        return torch.randn(shape, device=self.device)

    def rounded(self, array, dtype):
        return array.to(self.dtypes[dtype])

    def from_numpy(self, array, dtype):
        import numpy

        return self.rounded(self.torch.from_numpy(numpy.asarray(array, dtype=numpy.float32)).to(self.device), dtype)

    def empty(self, rows, columns, dtype):
        return self.torch.empty((rows, columns), dtype=self.dtypes[dtype], device=self.device)

    def poison(self, array):
        array.fill_(float("nan"))

    def copy(self, array):
        return array.clone()

    def interleaved(self, gate, up, group):
        """`group` gate rows, `group` up rows, and so on."""
        n, k = gate.shape
        return self.torch.stack((gate.view(n // group, group, k), up.view(n // group, group, k)), 1).reshape(2 * n, k)

    def rows(self, array, indices):
        return array[self.torch.tensor(indices, device=array.device)]

    def products_fp64(self, x, weights):
        """x weights^T in fp64 as a NumPy array; weights are widened in pieces, since a whole copy may not fit."""
        wide = x.double()
        pieces = [wide @ part.double().T for part in weights.split(4096)]
        return self.torch.cat(pieces, 1).cpu().numpy()

    def to_fp64(self, array):
        return array.double().cpu().numpy()

    def unwritten(self, array):
        return int(self.torch.isnan(array).sum())

    def synchronize(self):
        if self.memory == "cuda":
            self.torch.cuda.synchronize()

    def release(self):
        if self.memory == "cuda":
            self.torch.cuda.empty_cache()

    def cache_bytes(self):
        if self.memory == "cuda":
            return self.torch.cuda.get_device_properties(0).L2_cache_size
        return host_cache_bytes()


class NumpyArrays:
    """Host only."""

    name = "numpy"
    memory = "host"

    def __init__(self):
        import ml_dtypes
        import numpy

        self.numpy = numpy
        self.dtypes = {"bf16": ml_dtypes.bfloat16, "fp16": numpy.float16, "fp32": numpy.float32}
        self.seed(0)

    def seed(self, seed):
        self.generator = self.numpy.random.default_rng(seed)

    def random(self, rows, columns, kind="normal"):
        shape = (rows, columns)
        if kind == "uniform":
            return self.generator.random(shape, dtype=self.numpy.float32)
        if kind == "heavy_tailed":
            return self.generator.standard_t(3, shape).astype(self.numpy.float32)
        return self.generator.standard_normal(shape, dtype=self.numpy.float32)

    def rounded(self, array, dtype):
        return array.astype(self.dtypes[dtype])

    def from_numpy(self, array, dtype):
        return self.rounded(self.numpy.asarray(array, dtype=self.numpy.float32), dtype)

    def empty(self, rows, columns, dtype):
        return self.numpy.empty((rows, columns), dtype=self.dtypes[dtype])

    def poison(self, array):
        array.fill(float("nan"))

    def copy(self, array):
        return array.copy()

    def interleaved(self, gate, up, group):
        n, k = gate.shape
        both = self.numpy.stack((gate.reshape(n // group, group, k), up.reshape(n // group, group, k)), 1)
        return both.reshape(2 * n, k)

    def rows(self, array, indices):
        return array[indices]

    def products_fp64(self, x, weights):
        return x.astype(self.numpy.float64) @ weights.astype(self.numpy.float64).T

    def to_fp64(self, array):
        return array.astype(self.numpy.float64)

    def unwritten(self, array):
        return int(self.numpy.isnan(array.astype(self.numpy.float32)).sum())

    def synchronize(self):
        pass

    def release(self):
        pass

    def cache_bytes(self):
        return host_cache_bytes()


def host_cache_bytes():
    """Of the last level."""
    try:
        return os.sysconf("SC_LEVEL3_CACHE_SIZE") or HOST_CACHE_UNKNOWN
    except (ValueError, OSError):
        return HOST_CACHE_UNKNOWN


def choose(device):
    """(arrays, why not the other kinds). device: "auto", "cuda" or "cpu"; Unavailable if that cannot be had."""
    try:
        import torch
    except ImportError as error:
        if device == "cuda":
            raise Unavailable("--device=cuda: torch is not installed") from error
        return NumpyArrays(), "torch not installed"
    if device != "cpu" and torch.cuda.is_available():
        return TorchArrays(torch, "cuda"), ""
    if device == "cuda":
        raise Unavailable("--device=cuda: torch sees no GPU")
    return TorchArrays(torch, "cpu"), "no GPU" if device == "auto" else "--device=cpu"
