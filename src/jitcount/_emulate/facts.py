"""What is known of each chip's arithmetic, where it is from, and what becomes of it here.

A row is *as there* where this machine computes the same bits, and *bounded* where the chip has a
way of its own: an order of summation, a last ulp. What such a way can change is what `numerics`
bounds for every backend; `error_bound` carries it through a program to its result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jitcount._targets.names import Target

AS_THERE = "as there"
BOUNDED = "bounded"

TPU = "tpu"
NVIDIA = "cuda"


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that a kind of chip does."""

    platform: str
    subject: str
    there: str
    """What the chip does."""

    source: str
    standing: str = AS_THERE
    """Whether it is so here, too."""

    oldest: tuple[int, int] = (0, 0)
    """The first compute capability that it holds for."""

    newest: tuple[int, int] = (99, 9)
    """The last compute capability that it holds for."""


_PRECISION = "jax.lax.Precision"
_TEXT = "the compiler's own program"
_CUBLAS = "cuBLAS documentation, cublasComputeType_t"
_ANY_ORDER = "Higham, Accuracy and Stability of Numerical Algorithms, 4.2"

_ULPS = "XLA's exhaustive tests; CUDA C++ Programming Guide, Mathematical Functions"

_SORT = "XLA's operation semantics, Sort: is_stable"

_AMPERE = (8, 0)
_BEFORE_AMPERE = (7, 9)

FACTS = (
    # --- TPU
    Fact(
        TPU,
        "float32 products, default precision",
        "inputs rounded to bfloat16, once, ties to even; summed in float32",
        f"{_PRECISION}; digits of jax issues 9973, 13224, 23159",
    ),
    Fact(
        TPU,
        "float32 products, high precision",
        "three products of parts in bfloat16",
        f"{_PRECISION}; Henry, Heinecke and Tang, 2019, for the parts",
    ),
    Fact(
        TPU,
        "float32 products, highest precision",
        "six products of parts in bfloat16",
        f"{_PRECISION}; Henry, Heinecke and Tang, 2019, for the parts",
    ),
    Fact(
        TPU,
        "matrix times vector, small products",
        "multiplied and added in float32, where the compiler writes them so",
        f"{_TEXT}; a maintainer in jax issue 16349",
    ),
    Fact(
        TPU,
        "products and sums of 16 bits",
        "in float32, rounded once at the end",
        f"{_TEXT}, which leaves the conversions out",
    ),
    Fact(
        TPU,
        "float64",
        "a pair of float32, by the compiler's own steps",
        f"{_TEXT} (X64SplitHigh, X64SplitLow, X64Combine)",
    ),
    Fact(
        TPU,
        "functions of complex64",
        "the compiler's own formulas, which overflow early: the sign of -1e23 is -0",
        f"{_TEXT}; JAX's own tests leave them out on TPUs",
    ),
    Fact(
        TPU,
        "denormals of float32 and bfloat16",
        "flushed to zero, as XLA:CPU does",
        "jax.numpy.finfo and JAX's own tests for TPUs; measured for the CPU",
    ),
    # --- NVIDIA
    Fact(
        NVIDIA,
        "float32 products, default and high precision",
        "inputs rounded to TF32, once, ties away from zero; summed in float32",
        "XLA:GPU's and cuBLAS's cvt.rna.tf32.f32 (PTX ISA, cvt); pytorch issue 53635",
        oldest=_AMPERE,
    ),
    Fact(
        NVIDIA,
        "complex64 products, default and high precision",
        "real and imaginary parts rounded to TF32, as float32",
        f"XLA:GPU asks for CUBLAS_COMPUTE_32F_FAST_TF32; {_CUBLAS}",
        oldest=_AMPERE,
    ),
    Fact(
        NVIDIA,
        "float32 products, highest precision",
        "in float32",
        _PRECISION,
        oldest=_AMPERE,
    ),
    Fact(
        NVIDIA,
        "float32 products",
        "in float32, at every precision",
        "CUDA C++ Programming Guide: TF32 begins with capability 8.0",
        newest=_BEFORE_AMPERE,
    ),
    Fact(
        NVIDIA,
        "products in loop and reduction fusions",
        "in float32: no tensor core is used",
        _TEXT,
    ),
    Fact(
        NVIDIA,
        "products of 16 bits",
        "in float32, rounded once at the end",
        f"{_CUBLAS}: CUBLAS_COMPUTE_32F is what XLA asks for",
    ),
    Fact(NVIDIA, "float64", "in float64", _TEXT),
    Fact(
        NVIDIA,
        "denormals of float32, float64 and bfloat16",
        "kept; here XLA:CPU flushes them: off by the smallest normal number at most",
        "XLA's flag xla_gpu_ftz, which is off; measured for the CPU",
        BOUNDED,
    ),
    # --- Both
    *(
        Fact(
            platform,
            "conversions to float16 and float8",
            "rounded once, ties to even; the denormals of these types are kept",
            "JAX's own test_f16_mean, which no accelerator is excused from; PTX ISA, cvt.rn",
        )
        for platform in (TPU, NVIDIA)
    ),
    *(
        Fact(platform, subject, there, source, BOUNDED)
        for platform in (TPU, NVIDIA)
        for subject, there, source in (
            ("the order of sums", "its own", _ANY_ORDER),
            ("the last ulps of exp, log, tanh and the like", "its own", _ULPS),
            ("the order of ties in a sort that is not stable", "its own", _SORT),
        )
    ),
)


def facts_of(target: Target) -> tuple[Fact, ...]:
    """What is known of the arithmetic of a target's chip."""
    capability = getattr(target.chip, "capability", (0, 0))
    return tuple(
        fact
        for fact in FACTS
        if fact.platform == target.platform and fact.oldest <= capability <= fact.newest
    )
