"""The table of single operations: which cases test each primitive, and what is left out, and why.

A test compares it with the primitives that `jax.lax` exports, so a release with a new one is
noticed, and another one listens whether the cases really use what the table says.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tested:
    """Primitives that the same cases test, on the same classes of arguments."""

    arguments: str
    """The classes of arguments, in words."""

    cases: tuple[str, ...]
    """The ids of cases; ``{}`` stands for the primitive's name, with dashes."""

    primitives: tuple[str, ...]

    def cases_of(self, primitive: str) -> list[str]:
        """The ids of the cases that test a primitive."""
        return [case.format(primitive.replace("_", "-")) for case in self.cases]


_EACH_SIZE = ("op-single", "op-functions-long", "op-sharded-functions")
_INTEGERS = ("op-int8", "op-int16", "op-int32", "op-uint8", "op-uint16", "op-uint32")
_MOVES = (
    "op-moves-float32",
    "op-moves-int32",
    "op-moves-bfloat16",
    "op-moves-uint8",
    "op-moves-bool",
)
_REDUCED = ("op-reduce-float32", "op-reduce-int32", "op-reduce-bfloat16", "op-reduce-uint8")
_SHARDED, _LONG = "op-sharded-arrays", "op-long"
_LONGS = ("op-long-int32", "op-long-bfloat16", "op-long-uint8", "op-long-bool")

TESTED = (
    Tested(
        "specials, edges of the domain, each binade; one number, past 2**20; 16 bits",
        ("op-{}", "op-float16", "op-bfloat16", *_EACH_SIZE),
        (
            *("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel_i0e", "bessel_i1e"),
            *("cbrt", "ceil", "cos", "cosh", "digamma", "erf", "erf_inv", "erfc", "exp", "expm1"),
            *("floor", "lgamma", "log", "log1p", "log2", "logistic", "neg", "one_minus_square"),
            *("round", "rsqrt", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh"),
        ),
    ),
    Tested(
        "specials, edges of the domain, each binade; one number, past 2**20",
        ("op-{}", *_EACH_SIZE),
        ("exp2", "integer_pow"),
    ),
    Tested(
        "all pairs of specials, each binade of both; one number, past 2**20",
        ("op-{}", "op-float16-pairs", "op-bfloat16-pairs", *_EACH_SIZE),
        ("add", "atan2", "div", "max", "min", "mul", "pow", "rem", "sub"),
    ),
    Tested(
        "edges, and between them within what JAX's tests allow",
        ("op-{}",),
        ("igamma", "igamma_grad_a", "igammac", "polygamma", "regularized_incomplete_beta", "zeta"),
    ),
    Tested(
        "specials, ties, each binade",
        ("op-{}",),
        ("clamp", "is_finite", "nextafter", "reduce_precision", "select_n"),
    ),
    Tested("whole numbers", ("op-polynomial",), ("polynomial",)),
    Tested(
        "all pairs of the smallest and largest, each length in bits, each shift below the width",
        _INTEGERS,
        (
            *("add", "and", "clz", "div", "integer_pow", "max", "min", "mul", "neg", "not", "or"),
            *("population_count", "rem", "shift_left", "shift_right_arithmetic"),
            *("shift_right_logical", "sign", "square", "sub", "xor"),
        ),
    ),
    Tested(
        "both truth values", ("op-bool",), ("and", "eq", "max", "min", "ne", "not", "or", "xor")
    ),
    Tested("the smallest and largest, each length in bits", ("op-mulhi",), ("mulhi",)),
    Tested(
        "all pairs of specials and of the smallest and largest, neighbours",
        ("op-compare",),
        ("eq", "ge", "gt", "le", "lt", "ne"),
    ),
    Tested("all pairs of specials", ("op-total-order",), ("eq_to", "le_to", "lt_to")),
    Tested(
        "every pair of ten types: edges, halves, ties, each binade",
        tuple(
            f"op-convert-{name}"
            for name in (
                *("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32"),
                *("float16", "bfloat16", "float32"),
            )
        ),
        ("convert_element_type",),
    ),
    Tested("specials and each binade, all bytes", ("op-bitcast",), ("bitcast_convert_type",)),
    Tested(
        "finite numbers in all directions",
        ("op-complex",),
        ("complex", "conj", "imag", "real"),
    ),
    Tested(
        "every width; sizes around tiles and past 2**20; sharded",
        (*_MOVES, _LONG, *_LONGS, _SHARDED),
        ("broadcast_in_dim", "concatenate", "pad", "reshape", "rev", "slice", "transpose"),
    ),
    Tested("every width", _MOVES, ("copy", "split", "squeeze", "stack", "tile", "unstack")),
    Tested("past 2**20; sharded", (_LONG, _SHARDED), ("iota",)),
    Tested(
        "starts before, at and past each end; indices of three types; past 2**20; sharded",
        ("op-slices", _LONG, _SHARDED),
        ("dynamic_slice", "dynamic_update_slice"),
    ),
    Tested(
        "indices in range, beside it and far off, in each mode; every width; past 2**20; sharded",
        (
            "op-gather-float32",
            "op-gather-int32",
            "op-gather-bfloat16",
            "op-gather-uint8",
            "op-gather-bool",
            _LONG,
            _SHARDED,
        ),
        ("gather",),
    ),
    Tested(
        "indices in range, beside it, far off and repeated; in two modes; sharded",
        ("op-scatter-float32", "op-scatter-int32", _SHARDED),
        ("scatter", "scatter-add", "scatter-max", "scatter-min", "scatter-mul"),
    ),
    Tested("as the others", ("op-scatter-float32", "op-scatter-int32"), ("scatter-sub",)),
    Tested(
        "everything, nothing and rows; sizes around tiles, past 2**20; specials only; sharded",
        (*_REDUCED, "op-reduce-specials", _SHARDED),
        ("argmax", "argmin", "reduce_max", "reduce_min", "reduce_prod", "reduce_sum"),
    ),
    Tested(
        "everything and nothing; sizes around tiles",
        ("op-reduce-int32", "op-reduce-uint8", "op-reduce-bool"),
        ("reduce_and", "reduce_or", "reduce_xor"),
    ),
    Tested("ties", ("op-reduce",), ("reduce",)),
    Tested(
        "sizes around tiles, forward and backward; sharded",
        ("op-running", _SHARDED),
        ("cumprod",),
    ),
    Tested(
        "sizes around tiles, forward and backward; sharded, alone and together",
        ("op-running", _SHARDED, "op-sharded-windows"),
        ("cummax", "cummin", "cumsum"),
    ),
    Tested("forward and backward", ("op-cumlogsumexp",), ("cumlogsumexp",)),
    Tested(
        "stable and not; every width; specials; ties; two keys; past 2**20; sharded",
        ("op-sort", _LONG, _SHARDED),
        ("sort",),
    ),
    Tested(
        "ties, infinities, all of them; over a sharded axis",
        ("op-top-k", "op-sharded-top-k"),
        ("top_k",),
    ),
    Tested(
        "strides, padding, holes in the array and in the window; gradients",
        ("op-windows",),
        (
            *("reduce_window", "reduce_window_max", "reduce_window_min", "reduce_window_sum"),
            *("select_and_gather_add", "select_and_scatter", "select_and_scatter_add"),
        ),
    ),
    Tested(
        "0, 1, around a tile and more than 4,096 terms; batched; specials; sharded",
        ("op-dot-general", "op-dot-specials", "op-dot-rounded", _SHARDED),
        ("dot_general",),
    ),
    Tested(
        "strides, padding, holes, groups; sharded",
        ("op-conv-general-dilated", _SHARDED),
        ("conv_general_dilated",),
    ),
    Tested(
        "lengths with all kinds of factors; sharded", ("op-fft", "op-sharded-algebra"), ("fft",)
    ),
    Tested(
        "sides of 1, 3, 33 and 65; each side, turned or not; batched and sharded",
        ("op-cholesky-triangular-solve", "op-sharded-algebra"),
        ("cholesky", "triangular_solve"),
    ),
    Tested(
        "a side of 33",
        ("op-factorisations",),
        ("eigh", "lu", "lu_pivots_to_permutation", "qr", "svd"),
    ),
    Tested(
        "a side of 17",
        ("op-similar",),
        (
            *("cholesky_update", "eig", "hessenberg", "householder_product", "schur"),
            *("symmetric_product", "tridiagonal"),
        ),
    ),
    Tested("from either side", ("op-ormqr",), ("ormqr",)),
    Tested("diagonally dominant", ("op-tridiagonal-solve",), ("tridiagonal_solve",)),
    Tested(
        "whole numbers on all devices",
        ("sharded-collectives-whole", "op-sharded-collectives"),
        ("all_gather", "all_to_all", "pmax", "pmin", "ppermute", "psum"),
    ),
    Tested("all devices", ("sharded-collectives-whole",), ("axis_index",)),
    Tested("whole numbers", ("branches",), ("cond", "scan", "while")),
)

_COMPUTES_NOTHING = "computes nothing: it returns what it is given, or a token"
_IMPLEMENTATION_DEFINED = (
    'StableHLO: "The exact way how random numbers are generated is implementation-defined."'
)

LEFT_OUT = {
    "after_all": _COMPUTES_NOTHING,
    "create_token": _COMPUTES_NOTHING,
    "dce_sink": _COMPUTES_NOTHING,
    "device_put": _COMPUTES_NOTHING,
    "optimization_barrier": _COMPUTES_NOTHING,
    "sharding_constraint": _COMPUTES_NOTHING,
    "stage": _COMPUTES_NOTHING,
    "stop_gradient": _COMPUTES_NOTHING,
    "custom_linear_solve": "calls the functions that it is given, and computes nothing by itself",
    "approx_top_k": "JAX promises a recall, not a result",
    "ragged_all_to_all": "XLA:CPU does not have it, and no device was there to try a case on",
    "rng_bit_generator": _IMPLEMENTATION_DEFINED,
    "rng_uniform": _IMPLEMENTATION_DEFINED,
}
"""Primitives of `jax.lax` that no case of single operations is about, and why."""


@dataclass(frozen=True, slots=True)
class Undefined:
    """Arguments that no case has, because a backend may do with them what it likes."""

    arguments: str
    sentence: str
    """What the specification says, in its own words."""

    source: str = "StableHLO"


_ERRORS = (
    "error conditions are still possible, e.g. through integer overflows, out-of-bounds accesses, "
    "etc. Unless explicitly called out, all these errors result in implementation-defined behavior"
)

UNDEFINED = (
    Undefined(
        "floats converted to a whole number that the type cannot hold",
        "If the truncated value cannot be represented in the destination type, the behavior is TBD",
    ),
    Undefined(
        "whole numbers converted to a type that cannot hold them; rounded, a neighbour is right",
        "if the source value can be exactly represented in the destination type, the result value "
        "is that exact representation. Otherwise, the behavior is TBD",
    ),
    Undefined("shifts by the width or more, and by less than nothing", _ERRORS),
    Undefined("whole numbers divided by zero, and the smallest one by -1", _ERRORS),
    Undefined(
        "the order of equal keys in a sort that is not stable",
        "If is_stable is true, then the sorting is stable, that is, relative order of elements "
        "considered to be equal by the comparator is preserved",
    ),
    Undefined(
        "infinities, NaN and poles of functions of complex numbers",
        "Exceptions for nonstandard operations (e.g. complex arithmetic and certain transcendental "
        "functions) are implementation-defined",
    ),
    Undefined(
        "Cholesky factors of matrices that are not positive definite",
        "If there exists i where the input matrix is not an Hermitian positive-definite matrix, "
        "then the behavior is undefined",
    ),
    Undefined(
        "which of several updates of one place a scatter keeps",
        "schedule is an implementation-defined permutation of index_space(updates[0])",
    ),
    Undefined(
        "the bits of a NaN",
        "nothing: IEEE 754 says that an operation that propagates a NaN should keep its payload, "
        "not that it shall",
        "IEEE 754",
    ),
    Undefined(
        "denormal arguments and results",
        "nothing; XLA:CPU, TPUs and GPUs may take them for zeros (--xla_cpu_enable_fast_math and "
        "the flush to zero of PTX)",
        "XLA",
    ),
)
