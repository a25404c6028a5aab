"""Products as each chip rounds them, against a model in NumPy.

Inputs are such that all sums are exact in float32: what differs is the rounding of the inputs.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

from jitcount._emulate.arithmetic import EXACT, arithmetic_of
from jitcount._emulate.translate import NotKnownError, translate
from jitcount._targets.names import parse
from tests._emulate.cases import simple

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcount._emulate.arithmetic import Arithmetic
    from tests._emulate.conftest import Run

TPU = arithmetic_of(parse("tpu:v5e"))
A100 = arithmetic_of(parse("cuda:a100"))

_CONTRACTED = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
_PASSES = {
    "default": [(0, 0)],
    "high": [(1, 0), (0, 1), (0, 0)],
    "highest": [(2, 0), (0, 2), (1, 1), (1, 0), (0, 1), (0, 0)],
}


def _rounded(x: np.ndarray) -> np.ndarray:
    return x.astype(ml_dtypes.bfloat16).astype(np.float32)


def _tf32(x: np.ndarray) -> np.ndarray:
    """To 10 bits of mantissa, to nearest, of two that are as near away from zero."""
    bits = x.view(np.uint32).astype(np.uint64) + 0x1000
    return (bits & 0xFFFFE000).astype(np.uint32).view(np.float32)


def _parts(x: np.ndarray) -> list[np.ndarray]:
    found, rest = [], x
    for _ in range(3):
        found.append(_rounded(rest))
        rest = rest - found[-1]
    return found


def _model(left: np.ndarray, right: np.ndarray, precision: str) -> np.ndarray:
    lefts, rights = _parts(left), _parts(right)
    total = np.zeros((left.shape[0], right.shape[1]), np.float32)
    for one, other in _PASSES[precision]:
        total = total + lefts[one] @ rights[other]
    return total


def _single(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Numbers with all 24 bits in use."""
    return rng.uniform(1, 2, shape).astype(np.float32)


# With one term in each sum there is no order of summation: the model is exact to the bit.
@pytest.mark.parametrize("precision", _PASSES)
def test_a_tpu_rounds_to_bfloat16_as_often_as_the_precision_asks(
    precision: str, run_hlo: Run
) -> None:
    rng = np.random.default_rng(1)
    left, right = _single(rng, 16, 1), _single(rng, 1, 16)
    wanted = _model(left, right, precision)
    how = f"{_CONTRACTED}, operand_precision={{{precision},{precision}}}"
    case = simple("dot", (left, right), wanted, how)
    (made,) = run_hlo(case.text, *case.arguments, arithmetic=TPU)
    np.testing.assert_array_equal(made, wanted)
    error = np.max(np.abs(made - left.astype(np.float64) * right))
    assert {"default": 1e-3, "high": 1e-6, "highest": 1e-7}[precision] < error * 20 < 1
    assert [site.rounding.text for site in translate(case.text, TPU).sites] == [
        {
            "default": "bfloat16",
            "high": "bfloat16, three passes",
            "highest": "bfloat16, six passes",
        }[precision]
    ]


def test_the_higher_precision_of_two_operands_counts(run_hlo: Run) -> None:
    rng = np.random.default_rng(2)
    left, right = _single(rng, 4, 1), _single(rng, 1, 4)
    how = f"{_CONTRACTED}, operand_precision={{default,highest}}"
    case = simple("dot", (left, right), left @ right, how)
    (made,) = run_hlo(case.text, *case.arguments, arithmetic=TPU)
    np.testing.assert_array_equal(made, _model(left, right, "highest"))


@pytest.mark.parametrize("precision", _PASSES)
def test_a_gpu_rounds_to_tf32_but_at_the_highest_precision(precision: str, run_hlo: Run) -> None:
    rng = np.random.default_rng(3)
    left, right = _single(rng, 8, 1), _single(rng, 1, 8)
    wanted = left @ right if precision == "highest" else _tf32(left) @ _tf32(right)
    how = f"{_CONTRACTED}, operand_precision={{{precision},{precision}}}"
    case = simple("dot", (left, right), wanted, how)
    (made,) = run_hlo(case.text, *case.arguments, arithmetic=A100)
    np.testing.assert_array_equal(made, wanted)


@pytest.mark.parametrize(
    ("algorithm", "rounded"),
    [
        ("dot_bf16_bf16_f32", _rounded),
        ("dot_tf32_tf32_f32", _tf32),
        ("dot_f32_f32_f32", np.asarray),
    ],
)
def test_an_algorithm_that_the_program_names_is_taken(
    algorithm: str, rounded: Callable[[np.ndarray], np.ndarray], run_hlo: Run
) -> None:
    rng = np.random.default_rng(4)
    left, right = _single(rng, 8, 1), _single(rng, 1, 8)
    wanted = rounded(left) @ rounded(right)
    case = simple("dot", (left, right), wanted, f"{_CONTRACTED}, algorithm={algorithm}")
    (made,) = run_hlo(case.text, *case.arguments, arithmetic=A100)
    np.testing.assert_array_equal(made, wanted)
    (exact,) = run_hlo(case.text, *case.arguments, arithmetic=EXACT)
    np.testing.assert_array_equal(exact, left @ right)


def test_of_complex_numbers_both_parts_are_rounded(run_hlo: Run) -> None:
    rng = np.random.default_rng(5)
    left, right = _single(rng, 8, 1), _single(rng, 1, 8)
    wanted = _tf32(left) @ _tf32(right) * np.complex64(1j)
    given = (left.astype(np.complex64), right * np.complex64(1j))
    case = simple("dot", given, wanted, _CONTRACTED)
    (made,) = run_hlo(case.text, *case.arguments, arithmetic=A100)
    np.testing.assert_array_equal(made, wanted)
    (site,) = translate(case.text, A100).sites
    assert site.rounding.text == "TF32"


_FUSED = """fused (a: f32[8,1], b: f32[1,8]) -> f32[8,8]
%a = f32[8,1]{1,0} parameter(0)
%b = f32[1,8]{1,0} parameter(1)
ROOT %d = f32[8,8]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""


@pytest.mark.parametrize(
    ("arithmetic", "kind", "rounded"),
    [
        (A100, "kLoop", None),
        (A100, "kInput", None),
        (A100, "kCustom", _tf32),
        (TPU, "kLoop", _rounded),
        (TPU, "kOutput", _rounded),
        (EXACT, "kOutput", None),
    ],
)
def test_products_in_loops_are_exact_on_a_gpu(
    arithmetic: Arithmetic,
    kind: str,
    rounded: Callable[[np.ndarray], np.ndarray] | None,
    run_hlo: Run,
) -> None:
    rng = np.random.default_rng(4)
    left, right = _single(rng, 8, 1), _single(rng, 1, 8)
    wanted = left @ right if rounded is None else rounded(left) @ rounded(right)
    case = simple(
        "fusion", (left, right), wanted, f"kind={kind}, calls=%fused", computations=(_FUSED,)
    )
    (made,) = run_hlo(case.text, *case.arguments, arithmetic=arithmetic)
    np.testing.assert_array_equal(made, wanted)


def test_in_a_loop_only_the_algorithm_that_rounds_nothing_is_known(run_hlo: Run) -> None:
    rng = np.random.default_rng(4)
    left, right = _single(rng, 8, 1), _single(rng, 1, 8)
    fused = f"{_FUSED}, algorithm=dot_f32_f32_f32"
    how = "kind=kLoop, calls=%fused"
    case = simple("fusion", (left, right), left @ right, how, computations=(fused,))
    (made,) = run_hlo(case.text, *case.arguments, arithmetic=A100)
    np.testing.assert_array_equal(made, left @ right)
    with pytest.raises(NotKnownError, match="a product by the algorithm dot_tf32_tf32_f32"):
        translate(case.text.replace("dot_f32_f32_f32", "dot_tf32_tf32_f32"))


@pytest.mark.parametrize(
    ("algorithm", "dtype"),
    [
        ("dot_bf16_bf16_f32", ml_dtypes.bfloat16),
        ("dot_tf32_tf32_f32", np.float16),
        ("dot_f32_f32_f32", np.float16),
    ],
)
@pytest.mark.parametrize("kind", ["kLoop", "kCustom"])
def test_16_bits_that_an_algorithm_holds_are_not_rounded_anywhere(
    algorithm: str, dtype: Any, kind: str, run_hlo: Run
) -> None:
    rng = np.random.default_rng(4)
    left, right = (_single(rng, *shape).astype(dtype) for shape in ((8, 1), (1, 8)))
    wanted = left.astype(np.float32) @ right.astype(np.float32)
    element = "bf16" if dtype is ml_dtypes.bfloat16 else "f16"
    inputs = _FUSED.replace("= f32[8,1]", f"= {element}[8,1]").replace(
        "= f32[1,", f"= {element}[1,"
    )
    fused, how = f"{inputs}, algorithm={algorithm}", f"kind={kind}, calls=%fused"
    case = simple("fusion", (left, right), wanted, how, computations=(fused,))
    (made,) = run_hlo(case.text, *case.arguments, arithmetic=A100)
    np.testing.assert_array_equal(made, wanted)


def test_float16_is_more_than_an_algorithm_of_bfloat16_holds() -> None:
    x = np.zeros((2, 2), np.float16)
    case = simple("dot", (x, x), x, f"{_CONTRACTED}, algorithm=dot_bf16_bf16_f32")
    with pytest.raises(NotKnownError, match="a product by the algorithm dot_bf16_bf16_f32"):
        translate(case.text)


def test_float16_bfloat16_and_float64_are_not_rounded_once_more(run_hlo: Run) -> None:
    rng = np.random.default_rng(5)
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float64):
        left, right = (_single(rng, *shape).astype(dtype) for shape in ((4, 1), (1, 4)))
        wide = np.promote_types(dtype, np.float32) if dtype == np.float64 else np.float32
        wanted = (left.astype(wide) @ right.astype(wide)).astype(dtype)
        case = simple("dot", (left, right), wanted, _CONTRACTED)
        for arithmetic in (TPU, A100, EXACT):
            (made,) = run_hlo(case.text, *case.arguments, arithmetic=arithmetic)
            np.testing.assert_array_equal(made, wanted)


@pytest.mark.parametrize("whole", [np.int32, np.uint32, np.int8])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_a_whole_number_beside_a_float_is_taken_as_one(
    dtype: Any, whole: Any, run_hlo: Run
) -> None:
    """XLA:TPU leaves the two as they are in its program."""
    left, right = np.array([[3], [100]], whole), np.array([[1.5, -0.25]], dtype)
    wanted = (left.astype(np.float32) * right.astype(np.float32)).astype(dtype)
    for given in ((left, right), (right.T, left.T)):
        made = wanted if given[0] is left else wanted.T
        case = simple("dot", given, made, _CONTRACTED)
        for arithmetic in (TPU, EXACT):
            assert run_hlo(case.text, *case.arguments, arithmetic=arithmetic)[0].tolist() == (
                made.tolist()
            )


def test_beside_a_whole_number_a_tpu_rounds_a_float_as_ever(run_hlo: Run) -> None:
    right = _single(np.random.default_rng(7), 1, 4)
    left = np.array([[3], [100]], np.int32)
    case = simple("dot", (left, right), left.astype(np.float32) @ right, _CONTRACTED)
    (made,) = run_hlo(case.text, *case.arguments, arithmetic=TPU)
    np.testing.assert_array_equal(made, left.astype(np.float32) @ _rounded(right))


def test_sums_of_bfloat16_are_of_float32(run_hlo: Run) -> None:
    left = np.ones((1, 512), ml_dtypes.bfloat16)
    case = simple("dot", (left, left.T.copy()), np.full((1, 1), 512, np.float32), _CONTRACTED)
    (made,) = run_hlo(case.text, *case.arguments, arithmetic=TPU)
    np.testing.assert_array_equal(made, case.expected[0])


def test_a_line_that_is_to_be_exact_is_not_rounded(run_hlo: Run) -> None:
    rng = np.random.default_rng(6)
    left, right = _single(rng, 4, 1), _single(rng, 1, 4)
    place = 'metadata={op_name="jit(f)/dot_general" source_file="/a/model.py" source_line=8}'
    case = simple("dot", (left, right), left @ right, f"{_CONTRACTED}, {place}")
    (site,) = translate(case.text, TPU).sites
    assert (str(site.place), site.what) == ("model.py:8", "dot_general")
    (made,) = run_hlo(case.text, *case.arguments, arithmetic=TPU, exact={site.place})
    np.testing.assert_array_equal(made, left @ right)
    (made,) = run_hlo(case.text, *case.arguments, arithmetic=TPU)
    np.testing.assert_array_equal(made, _rounded(left) @ _rounded(right))


def _at(name: str, line: int) -> str:
    return f'metadata={{op_name="jit(f)/{name}" source_file="/a/model.py" source_line={line}}}'


_ROUNDED_BEFORE = f"""
HloModule m

%fused (p: f32[4,1]) -> bf16[4,1] {{
  %p = f32[4,1] parameter(0)
  ROOT %round = bf16[4,1] convert(%p)
}}

ENTRY %main (x: f32[4,1], y: f32[1,4], z: f32[1,4]) -> (f32[4,4], f32[4,4]) {{
  %x = f32[4,1] parameter(0), metadata={{op_name="batch['query']"}}
  %y = f32[1,4] parameter(1)
  %z = f32[1,4] parameter(2)
  %narrow = bf16[4,1] fusion(%x), kind=kLoop, calls=%fused
  %moved = bf16[1,4] copy(%y), {_at("transpose", 3)}
  %other = bf16[1,4] copy(%z)
  %one = f32[4,4] convolution(%narrow, %moved), dim_labels=bf_io->bf, {_at("dot_general", 8)}
  %two = f32[4,4] convolution(%narrow, %other), dim_labels=bf_io->bf, {_at("dot_general", 9)}
  ROOT %both = (f32[4,4], f32[4,4]) tuple(%one, %two)
}}
"""


def test_what_was_rounded_before_a_product_is_said_at_the_line_of_the_product() -> None:
    sites = translate(_ROUNDED_BEFORE, TPU, is_float32=True).sites
    assert [(str(site.place), site.what, site.rounding.text) for site in sites] == [
        ("model.py:8", "dot_general", "bfloat16"),
        ("model.py:9", "dot_general", "bfloat16"),
    ]


def test_of_a_program_with_bfloat16_of_its_own_that_is_no_rounding() -> None:
    assert not translate(_ROUNDED_BEFORE, TPU).sites


def test_a_line_is_exact_though_its_input_was_rounded_before_it_for_another(run_hlo: Run) -> None:
    rng = np.random.default_rng(7)
    x, y, z = _single(rng, 4, 1), _single(rng, 1, 4), _single(rng, 1, 4)
    one, two = run_hlo(
        _ROUNDED_BEFORE, x, y, z, arithmetic=TPU, is_float32=True, exact={"model.py:8"}
    )
    np.testing.assert_array_equal(one, x @ y)
    np.testing.assert_array_equal(two, _rounded(x) @ _rounded(z))


# --- Products of matrices that XLA:TPU writes as convolutions ------------------------------------


def _small(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Whole numbers: their sums are exact."""
    return rng.integers(-8, 8, shape).astype(np.float32)


_WRITTEN = {
    # What stands for it, and the shapes of the operands.
    "bf,fo->bo": ("dim_labels=bf_io->bf", (3, 4), (4, 5)),
    "fb,fo->ob": ("dim_labels=fb_io->fb", (4, 3), (4, 5)),
    "nbf,nfo->nbo": (
        "window={size=6 stride=5 lhs_dilate=6}, dim_labels=0bf_0io->0bf",
        (6, 3, 4),
        (6, 4, 5),
    ),
    "bkf,kfo->bo": ("window={size=3}, dim_labels=b0f_0io->bf0", (2, 3, 4), (3, 4, 5)),
    "bxf,fo->bxo": ("window={size=1}, dim_labels=b0f_0io->b0f", (2, 7, 4), (1, 4, 5)),
    "bf,xfo->bxo": (
        "window={size=7 pad=6_6 rhs_reversal=1}, dim_labels=b0f_0io->b0f",
        (2, 1, 4),
        (7, 4, 5),
    ),
    "nbxf,nfo->nxbo": (
        "window={size=3x1 stride=2x1 lhs_dilate=3x1}, dim_labels=0b1f_01io->01bf",
        (3, 2, 4, 5),
        (3, 1, 5, 6),
    ),
}


@pytest.mark.parametrize("sums", _WRITTEN)
@pytest.mark.parametrize("arithmetic", [EXACT, TPU], ids=["exact", "tpu"])
def test_a_product_written_as_a_convolution_is_found_again(
    sums: str, arithmetic: Arithmetic, run_hlo: Run
) -> None:
    how, of_left, of_right = _WRITTEN[sums]
    rng = np.random.default_rng(7)
    left, right = _small(rng, *of_left), _small(rng, *of_right)
    one, other = sums.partition("->")[0].split(",")
    wanted = np.einsum(sums, _squeezed(left, one), _squeezed(right, other))
    wanted = _expanded(wanted, how)
    case = simple("convolution", (left, right), wanted, how)
    assert '"stablehlo.convolution"' not in translate(case.text, arithmetic).text
    (made,) = run_hlo(case.text, *case.arguments, arithmetic=arithmetic)
    np.testing.assert_array_equal(made, wanted)


def _squeezed(value: np.ndarray, axes: str) -> np.ndarray:
    return value if value.ndim == len(axes) else value.reshape([e for e in value.shape if e != 1])


def _expanded(value: np.ndarray, how: str) -> np.ndarray:
    rank = len(how.rpartition("->")[2])
    return value.reshape(value.shape + (1,) * (rank - value.ndim))


# --- Convolutions that are none ------------------------------------------------------------------


def _convolved(x: np.ndarray, k: np.ndarray, stride: int, pad: int, spread: int) -> np.ndarray:
    """One spatial axis, b0f_0io->b0f; with holes in the window where `spread` is not 1."""
    x = np.pad(x, ((0, 0), (pad, pad), (0, 0)))
    reach = (k.shape[0] - 1) * spread + 1
    places = range(0, x.shape[1] - reach + 1, stride)
    return np.stack(
        [np.einsum("bxf,xfo->bo", x[:, i : i + reach : spread], k) for i in places], axis=1
    )


def test_a_convolution_moves_its_window(run_hlo: Run) -> None:
    rng = np.random.default_rng(8)
    for stride, pad, spread in itertools.product((1, 2), (0, 1), (1, 2)):
        x, k = _small(rng, 2, 9, 3), _small(rng, 3, 3, 4)
        wanted = _convolved(x, k, stride, pad, spread)
        window = f"size=3 stride={stride} pad={pad}_{pad} rhs_dilate={spread}"
        case = simple(
            "convolution", (x, k), wanted, f"window={{{window}}}, dim_labels=b0f_0io->b0f"
        )
        for arithmetic in (EXACT, TPU):
            (made,) = run_hlo(case.text, *case.arguments, arithmetic=arithmetic)
            np.testing.assert_array_equal(made, wanted)


def test_a_convolution_of_groups_keeps_them_apart(run_hlo: Run) -> None:
    rng = np.random.default_rng(9)
    x, k = _small(rng, 2, 9, 4), _small(rng, 3, 2, 6)
    wanted = np.concatenate(
        [_convolved(x[..., 2 * i : 2 * i + 2], k[..., 3 * i : 3 * i + 3], 1, 0, 1) for i in (0, 1)],
        axis=-1,
    )
    how = "window={size=3}, dim_labels=b0f_0io->b0f, feature_group_count=2"
    case = simple("convolution", (x, k), wanted, how)
    (made,) = run_hlo(case.text, *case.arguments, arithmetic=TPU)
    np.testing.assert_array_equal(made, wanted)


def test_a_reversed_window_of_one_place_is_no_product_of_batches(run_hlo: Run) -> None:
    rng = np.random.default_rng(10)
    x, k = _small(rng, 2, 9, 3), _small(rng, 3, 3, 4)
    wanted = _convolved(x, k[::-1], 1, 0, 1)
    how = "window={size=3 rhs_reversal=1}, dim_labels=b0f_0io->b0f"
    case = simple("convolution", (x, k), wanted, how)
    (made,) = run_hlo(case.text, *case.arguments)
    np.testing.assert_array_equal(made, wanted)


# --- What is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("algorithm=dot_bf16_bf16_f32_x3", "a product by the algorithm dot_bf16_bf16_f32_x3"),
        ("sparsity=L.1@2:4", "a sparse product"),
    ],
)
def test_a_product_that_is_not_known_says_so(how: str, words: str) -> None:
    x = np.zeros((2, 2), np.float32)
    case = simple("dot", (x, x), x, f"{_CONTRACTED}, {how}")
    with pytest.raises(NotKnownError) as error:
        translate(case.text)
    assert str(error.value) == words
