"""The miscompiles of JAX and XLA that were reported in public and concern a supported release.

docs/miscompiles.md has more of them, with those that need a device to be seen. Here are those that
jitcount can do something about: expect cases of the suite to fail, and warn of programs.
"""

from __future__ import annotations

import importlib.metadata
import os
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from platform import machine
from typing import TYPE_CHECKING

from jitcount._miscompiles import cublas, kernels

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True, kw_only=True)
class Miscompile:
    """A fault of some releases: which programs are computed wrongly, and what to use instead."""

    reference: str
    """The public report: ``jax #39103``; ``unreported: ...`` where none was found."""

    about: str
    """The programs that are concerned, in a few words."""

    platform: str
    """The platform whose compiler has the fault: ``cpu``, ``cuda`` or ``tpu``."""

    releases: tuple[str, str]
    """The first and the last release of jaxlib that have the fault, as far as was tried."""

    remedy: str = ""
    """What to do about it: a release to use, another way to write the program."""

    cured_by: str = ""
    """A flag of XLA's that avoids the fault; empty where none is known."""

    fewest_devices: int = 1
    """Over how many devices a program must be sharded at least to be wrong."""

    cases: tuple[str, ...] = ()
    """The ids of the suite's cases that are wrong there, as patterns."""

    machines: tuple[str, ...] = ()
    """The kinds of processors that have the fault, where others were reported to be right."""

    in_shared_pass: bool = False
    """Whether it is in a pass of XLA that the compilers of other platforms have, too."""

    without_jit: bool = False
    """Whether a single operation shows it, so that results are wrong without `jax.jit`, too."""

    may_be_in: Callable[[str], bool] | None = None
    """Whether an optimised program, as text, has the operations that are computed wrongly.

    None where no such program can be told from others by its operations.
    """

    def __str__(self) -> str:
        cure = f"set XLA_FLAGS={self.cured_by}" if self.cured_by else ""
        return f"{self.about} ({self.reference}): {', or '.join(filter(None, [self.remedy, cure]))}"

    def makes_wrong(self, case: str) -> bool:
        """Whether it makes a case of the suite, by its id, wrong."""
        return any(fnmatchcase(case, pattern) for pattern in self.cases)

    def is_in(self, jaxlib: str) -> bool:
        """Whether a release of jaxlib has it."""
        return _has(jaxlib, self.releases)

    @property
    def is_cured(self) -> bool:
        """Whether this process has the flag that avoids the fault, perhaps among other values."""
        name, _, value = self.cured_by.partition("=")
        flags = (flag.partition("=") for flag in os.environ.get("XLA_FLAGS", "").split())
        return any(found == name and value in values.split(",") for found, _, values in flags)


# XLA:CPU's library of kernels, which most of its faults since 0.9 are in.
_WITHOUT_YNNPACK = "--xla_cpu_experimental_ynn_fusion_type="

# The pass that sums over devices once after a loop, and no more in each of its steps.
_WITHOUT_SUMS_MOVED = "--xla_disable_hlo_passes=while-loop-all-reduce-code-motion"

# The pass that rewrites one expression as another.
_WITHOUT_SIMPLIFIER = "--xla_disable_hlo_passes=algsimp"

# The oldest release that jitcount supports, and the newest that was tried.
_OLDEST, _NEWEST = "0.7.1", "0.12.0.1"

KNOWN = (
    Miscompile(
        reference="jax #39103",
        about="vmapped products followed by reductions",
        platform="cpu",
        releases=("0.10.2", "0.10.2"),
        remedy="use 0.10.1 or 0.11",
        cured_by=_WITHOUT_YNNPACK,
        cases=("class-product-rows-squared", "class-product-float64-reduced"),
        may_be_in=kernels.rows_changed_and_reduced,
    ),
    # The report calls 0.10.1 right, and so is its own program there. These two forms of the same
    # kernels, which the same flag avoids, were found by the suite's classes in more releases.
    Miscompile(
        reference="jax #39103",
        about="rows times one matrix, then their sum, mean, smallest or largest",
        platform="cpu",
        releases=("0.9.1", "0.10.2"),
        remedy="use 0.12",
        cured_by=_WITHOUT_YNNPACK,
        cases=("class-product-rows-reduced",),
        may_be_in=kernels.rows_reduced,
    ),
    Miscompile(
        reference="jax #39103",
        about="products with a matrix that is broadcast over a batch, then a reduction",
        platform="cpu",
        releases=("0.10.2", "0.11.2"),
        remedy="use 0.12",
        cured_by=_WITHOUT_YNNPACK,
        cases=("class-product-matrices-reduced", "product-of-repeated-reduced"),
        may_be_in=kernels.with_repeated_array,
    ),
    Miscompile(
        reference="unreported: one number",
        about="products with an array of one number, followed by reductions",
        platform="cpu",
        releases=("0.10.2", _NEWEST),
        remedy="use 0.10.1",
        cured_by=_WITHOUT_YNNPACK,
        cases=("product-with-one-number-reduced",),
        may_be_in=kernels.with_repeated_number,
    ),
    Miscompile(
        reference="unreported: wrapped bytes",
        about="sums, differences or products of int8 or uint8, then their largest or smallest",
        platform="cpu",
        releases=("0.10.2", _NEWEST),
        remedy="use 0.10.1",
        cured_by=_WITHOUT_YNNPACK,
        cases=("extremes-of-wrapped-bytes",),
        may_be_in=kernels.with_arithmetic_of_bytes,
    ),
    Miscompile(
        reference="jax #39257",
        about="products summed along one of seven axes or more: the process crashes or hangs",
        platform="cpu",
        releases=("0.10.2", "0.11.0"),
        remedy="use 0.10.1 or 0.11.1",
        cured_by=_WITHOUT_YNNPACK,
        cases=("reductions-of-rank-8",),
        machines=("x86_64", "AMD64"),
    ),
    Miscompile(
        reference="openxla #21461",
        about="minima and maxima of thousands of numbers, one of which is NaN",
        platform="cpu",
        releases=("0.9.1", _NEWEST),
        cured_by=_WITHOUT_YNNPACK,
        cases=("extrema-of-nan",),
        without_jit=True,
    ),
    Miscompile(
        reference="openxla #48714",
        about="windows of one element in a dilated array",
        platform="cpu",
        releases=("0.10.2", _NEWEST),
        cured_by=_WITHOUT_YNNPACK,
        cases=("window-dilated", "class-windows-dilated"),
        without_jit=True,
    ),
    Miscompile(
        reference="openxla #48714",
        about="windows of one element in a dilated array of 256 × 256 and more",
        platform="cpu",
        releases=("0.9.1", _NEWEST),
        cured_by=_WITHOUT_YNNPACK,
        cases=("window-dilated-large",),
        without_jit=True,
    ),
    Miscompile(
        reference="openxla #49176",
        about="an array with a shifted slice of itself written over it, then reshaped",
        platform="cpu",
        releases=(_OLDEST, _NEWEST),
        cured_by=_WITHOUT_SIMPLIFIER,
        cases=("update-of-itself", "class-shifted-reshaped"),
    ),
    Miscompile(
        reference="openxla #48717",
        about="constant unsigned indices with their top bit set",
        platform="cpu",
        releases=(_OLDEST, _NEWEST),
        remedy="make such an index int32",
        cases=("constant-index",),
        in_shared_pass=True,
    ),
    Miscompile(
        reference="openxla #49118",
        about="updates past the end of an array that is spread over devices",
        platform="cpu",
        releases=(_OLDEST, _NEWEST),
        remedy="clip the start of the update",
        cases=("sharded-update-past-the-end",),
        in_shared_pass=True,
        without_jit=True,
    ),
    Miscompile(
        reference="openxla #48719",
        about="windows of one element in a cropped array: the process aborts",
        platform="cpu",
        releases=(_OLDEST, _NEWEST),
        remedy="crop it with a slice",
        cured_by=_WITHOUT_SIMPLIFIER,
        cases=("window-of-one-cropped",),
        in_shared_pass=True,
        without_jit=True,
    ),
    Miscompile(
        reference="jax #37234",
        about="the softmax of scaled numbers of 1e10 and more is NaN",
        platform="cpu",
        releases=(_OLDEST, _NEWEST),
        remedy="scale them by a power of two, or before jit",
        cured_by="--xla_cpu_max_isa=AVX",
        cases=("softmax-of-far-numbers",),
        in_shared_pass=True,
    ),
    Miscompile(
        reference="jax #40849",
        about="a dynamic slice of a dynamic slice whose start is out of range",
        platform="cpu",
        releases=(_OLDEST, "0.11.2"),
        remedy="use 0.12",
        cured_by=_WITHOUT_SIMPLIFIER,
        cases=("slice-of-slice", "class-slices-merged"),
        in_shared_pass=True,
    ),
    Miscompile(
        reference="openxla #49122",
        about="slices from past the end of an array that is spread over devices",
        platform="cpu",
        releases=(_OLDEST, "0.11.2"),
        remedy="use 0.12",
        cured_by=_WITHOUT_SIMPLIFIER,
        cases=("sharded-slice-past-the-end",),
        in_shared_pass=True,
    ),
    Miscompile(
        reference="openxla #48715",
        about="windows over an array that a negative padding has cropped",
        platform="cpu",
        releases=(_OLDEST, "0.11.2"),
        remedy="use 0.12",
        cases=("window-of-cropped",),
        in_shared_pass=True,
    ),
    Miscompile(
        reference="openxla #48713",
        about="convolutions with negative padding in front",
        platform="cpu",
        releases=(_OLDEST, "0.11.2"),
        remedy="use 0.12",
        cases=("convolution-cropped",),
        without_jit=True,
    ),
    Miscompile(
        reference="openxla #48716",
        about="scatters whose indices have no element",
        platform="cpu",
        releases=(_OLDEST, "0.11.2"),
        remedy="use 0.12",
        cases=("scatter-without-index",),
        without_jit=True,
    ),
    Miscompile(
        reference="openxla #48718",
        about="one update at an index whose type cannot count all places",
        platform="cpu",
        releases=(_OLDEST, "0.11.2"),
        remedy="use 0.12, or make such an index int32",
        cases=("narrow-index-scatter",),
        in_shared_pass=True,
        without_jit=True,
    ),
    Miscompile(
        reference="openxla #48454",
        about="loops whose constant step does not divide the distance",
        platform="cpu",
        releases=(_OLDEST, "0.11.2"),
        remedy="use 0.12",
        cases=("loop-steps",),
        in_shared_pass=True,
    ),
    Miscompile(
        reference="openxla #42732",
        about="a function of its inverse where the value between is infinite: log(exp(x))",
        platform="cpu",
        releases=(_OLDEST, "0.11.1"),
        remedy="use 0.11.2",
        cured_by=_WITHOUT_SIMPLIFIER,
        cases=("inverse-past-overflow",),
        in_shared_pass=True,
    ),
    Miscompile(
        reference="jax #29537",
        about="exponentials of a NaN that the compiler finds out",
        platform="cpu",
        releases=(_OLDEST, "0.11.1"),
        remedy="use 0.11.2",
        cases=("function-of-known-nan",),
    ),
    Miscompile(
        # Not reported that we know of. `ReshardAsWindowedInput` in XLA's spmd_partitioner.cc keeps
        # what it has filled up for one window by the window and the sharding, without the number
        # that it was filled up with: cumsum and cummin of one sharded array share their zeros.
        reference="unreported: two windows",
        about="two windows over one sharded array, such as its running sum and its running minimum",
        platform="cpu",
        releases=(_OLDEST, "0.11.2"),
        remedy="use 0.12",
        cases=("op-sharded-windows",),
    ),
    Miscompile(
        # Found by the hunt. openxla #4491 was the same of dynamic_slice, and was mended in 2023.
        reference="unreported: narrow place",
        about="updates of a part, at a uint8 place in an array with more places than it can count",
        platform="cpu",
        releases=(_OLDEST, "0.11.0"),
        remedy="use 0.11.1, or make such an index int32",
        cases=("narrow-index-update",),
        without_jit=True,
    ),
    Miscompile(
        reference="openxla #44705",
        about="the angle of a zero that the compiler finds out",
        platform="cpu",
        releases=(_OLDEST, "0.11.0"),
        remedy="use 0.11.1",
        cases=("angle-of-zeros",),
        in_shared_pass=True,
    ),
    Miscompile(
        reference="openxla #46628",
        about="sizes and signs of squares of integers that wrap around",
        platform="cpu",
        releases=(_OLDEST, "0.11.0"),
        remedy="use 0.11.1",
        cured_by=_WITHOUT_SIMPLIFIER,
        cases=("squares-of-integers",),
        in_shared_pass=True,
    ),
    Miscompile(
        reference="jax #33479",
        about="gathers from constants",
        platform="cpu",
        releases=(_OLDEST, "0.8.1"),
        remedy="use 0.8.2",
        cured_by=_WITHOUT_SIMPLIFIER,
        cases=("constant-gather",),
    ),
    *(
        Miscompile(
            reference="openxla #49143",
            about="scatters in a loop whose updates are sharded, and what they are added to is not",
            platform=platform,
            releases=("0.10.1", "0.11.2"),
            remedy="use 0.12",
            cured_by=_WITHOUT_SUMS_MOVED,
            fewest_devices=2,
            cases=("sharded-scatter-in-loops", "sharded-scatter-to-spread-in-loops"),
        )
        for platform in ("tpu", "cuda")
    ),
    *(
        Miscompile(
            reference="openxla #49005",
            about="the places that top_k returns for a sharded array",
            platform=platform,
            releases=("0.10.2", "0.11.2"),
            remedy="use 0.12, or compute with these places in the same program",
            fewest_devices=2,
            cases=("sharded-top-k",),
        )
        for platform in ("tpu", "cuda")
    ),
    Miscompile(
        reference="openxla #46110",
        about="products by cuBLAS with a bias or an activation, scaled afterwards",
        platform="cuda",
        releases=("0.10.0", "0.11.0"),
        remedy="use 0.11.1",
        cured_by="--xla_disable_hlo_passes=cublas-gemm-rewriter",
        may_be_in=cublas.scales_before_epilogue,
    ),
)


def warning(miscompile: Miscompile) -> str:
    """What to tell somebody who uses a release that has this miscompile."""
    return f"this JAX is known to miscompile: {miscompile}"


def has_recognisable() -> bool:
    """Whether the installed release has a miscompile, of any platform, that `may_be_in` tells."""
    return any(each.is_in(jaxlib_release()) for each in KNOWN if each.may_be_in)


@cache
def jaxlib_release() -> str:
    """The installed release of jaxlib, which brings the compilers."""
    return importlib.metadata.version("jaxlib")


def _has(jaxlib: str, releases: tuple[str, str]) -> bool:
    """Whether a release is between the first and the last one.

    >>> _has("0.10.2", ("0.9.2", "0.10.2")), _has("0.10.10", ("0.9.2", "0.10.2"))
    (True, False)
    """
    first, last = map(_numbers, releases)
    return first <= _numbers(jaxlib) <= last


def _numbers(release: str) -> tuple[int, ...]:
    """The numbers of a release; a development version counts as the release that it precedes."""
    return tuple(int(part) for part in release.split(".") if part.isdecimal())


def known_on(platform: str, jaxlib: str) -> list[Miscompile]:
    """The miscompiles of a platform's compiler in a release of jaxlib, with this process's flags.

    >>> known_on("cpu", "0.8.1")[-1].reference
    'jax #33479'
    """
    platform = {"gpu": "cuda"}.get(platform, platform)  # as JAX calls a GPU, and as we do
    return [
        each
        for each in KNOWN
        if each.platform == platform
        and each.is_in(jaxlib)
        and (not each.machines or machine() in each.machines)
        and not each.is_cured
    ]
