"""Calls of a target's own libraries, as its compiler wrote them: each gives what it stands for.

The texts are shortened; what a call is told stands in them as the compiler had it.
"""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jitcount._emulate.arithmetic import EXACT, Arithmetic, Rounding
from jitcount._emulate.translate import NotKnownError, translate
from jitcount._jax.substituting import Compilable, substituted

pytestmark = pytest.mark.thorough

Arrays = tuple[np.ndarray, ...]

_TYPES = {"f32": np.float32, "f16": np.float16, "bf16": jnp.bfloat16, "s32": np.int32}
_TYPES |= {"s8": np.int8, "u8": np.uint8, "c64": np.complex64}
_SHAPE = re.compile(r"(\w+)\[([\d,]*)\]")


def normal(*extents: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=extents).astype(np.float32)


def module(result: str, *operands: str, target: str, rest: str = "") -> str:
    """A program that makes one call with its arguments."""
    lines = [f"  %a{i} = {shape} parameter({i})" for i, shape in enumerate(operands)]
    given = ", ".join(f"%a{i}" for i in range(len(operands)))
    heads = ", ".join(f"a{i}: {shape}" for i, shape in enumerate(operands))
    lines.append(
        f'  ROOT %call = {result} custom-call({given}), custom_call_target="{target}"{rest}'
    )
    return "\n".join(["HloModule m", "", f"ENTRY %main ({heads}) -> {result} {{", *lines, "}", ""])


def run(text: str, *arguments: np.ndarray, arithmetic: Arithmetic = EXACT) -> Arrays:
    """Rewrite a program, compile it in place of another that takes and gives the same, call it."""
    translated = translate(text, arithmetic)
    (root,) = re.findall(r"ROOT %\S+ = (.*?) custom-call", text)
    shapes = [
        (tuple(int(n) for n in extents.split(",") if n), _TYPES[element])
        for element, extents in _SHAPE.findall(root)
    ]

    def stand_in(*_: Any) -> tuple[jax.Array, ...]:
        return tuple(jnp.zeros(*shape) for shape in shapes)

    def compiled(compilable: Compilable) -> Any:
        return compilable.compile(compilable.with_body(translated.text))

    given = [jnp.asarray(argument) for argument in arguments]
    jax.block_until_ready(given)
    lowered = jax.jit(stand_in, keep_unused=True).lower(*given)
    with substituted(compiled, 1_000_003):
        executable = lowered.compile()
    return tuple(np.asarray(each) for each in executable(*given))


def test_a_call_that_is_not_known_is_named() -> None:
    text = module("f32[3]", "f32[3]", target="SomethingNew")
    with pytest.raises(NotKnownError, match=r"^a call of SomethingNew$"):
        translate(text)


def test_slices_are_joined_by_their_places_and_not_by_the_order_of_their_moves() -> None:
    text = """HloModule m

ENTRY %main (x: f32[5,4]) -> f32[5,4] {
  %x = f32[5,4] parameter(0)
  %start = ((f32[5,4]), f32[2,4], s32[]) slice-start(%x), slice={[3:5], [0:4]}
  %start.1 = ((f32[5,4]), f32[3,4], s32[]) slice-start(%x), slice={[0:3], [0:4]}
  %done = f32[2,4] slice-done(%start)
  %done.1 = f32[3,4] slice-done(%start.1)
  ROOT %call = f32[5,4] custom-call(%done, %done.1), custom_call_target="ConcatBitcast"
}
"""
    x = normal(5, 4, seed=1)
    (made,) = run(text, x)
    np.testing.assert_array_equal(made, x)


@pytest.mark.parametrize("part", ["f32[3,4]", "f32[3,2]"])
def test_what_is_joined_without_a_known_place_is_not_known(part: str) -> None:
    with pytest.raises(NotKnownError, match=r"^a call of ConcatBitcast of other forms$"):
        translate(module("f32[6,4]", part, part, target="ConcatBitcast"))


# --- cuDNN ----------------------------------------------------------------------------------------


def test_cublas_is_told_an_algorithm_too() -> None:
    left, right = normal(4, 1, seed=1), normal(1, 4, seed=2)

    def text(more: str) -> str:
        config = (
            '{"gemm_backend_config":{"alpha_real":1,"beta":0,"dot_dimension_numbers":'
            '{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]},' + more + "}}"
        )
        rest = f", backend_config={config}"
        return module("f32[4,4]", "f32[4,1]", "f32[1,4]", target="__cublas$gemm", rest=rest)

    asked = '"precision_config":{"algorithm":"ALG_DOT_BF16_BF16_F32"}'
    (made,) = run(text(asked), left, right, arithmetic=TF32)
    one, other = (each.astype(jnp.bfloat16).astype(np.float32) for each in (left, right))
    np.testing.assert_array_equal(made, one @ other)
    with pytest.raises(NotKnownError, match=r"^a product scaled by a complex number$"):
        translate(text('"alpha_imag":2'))


LABELS = ("NHWC", "OHWI", "NHWC")
TF32 = Arithmetic({"default": Rounding("TF32")}, in_loops=False)


def told(mode: str = "kNone", scale: float = 1, side: float = 0, alpha: float = 0) -> str:
    return (
        f', backend_config={{"operation_queue_id":"0","cudnn_conv_backend_config":{{'
        f'"activation_mode":"{mode}","conv_result_scale":{scale},"side_input_scale":{side},'
        f'"leakyrelu_alpha":{alpha}}}}}'
    )


def convolve(
    strides: tuple[int, int], padding: Any, dilation: tuple[int, int] = (1, 1), groups: int = 1
) -> Callable[[Any, Any], jax.Array]:
    return lambda image, kernel: lax.conv_general_dilated(
        image,
        kernel,
        strides,
        padding,
        rhs_dilation=dilation,
        dimension_numbers=LABELS,
        feature_group_count=groups,
        precision="highest",
    )


_DILATED = " stride=2x1 pad=1_1x2_2 rhs_dilate=2x3"

# Strides, padding, dilation, groups; and how HLO writes them.
WINDOWS = {
    "plain": (convolve((1, 1), ((0, 0), (0, 0))), "", 1),
    "strides": (convolve((2, 3), ((1, 1), (2, 2))), " stride=2x3 pad=1_1x2_2", 1),
    "uneven": (convolve((2, 2), ((0, 1), (2, 1))), " stride=2x2 pad=0_1x2_1", 1),
    "dilated": (convolve((2, 1), ((1, 1), (2, 2)), (2, 3)), _DILATED, 1),
    "groups": (convolve((2, 1), ((1, 1), (1, 1)), groups=2), " stride=2x1 pad=1_1x1_1", 2),
    "depthwise": (convolve((1, 1), ((1, 1), (1, 1)), groups=4), " pad=1_1x1_1", 4),
}


def written(array: Any) -> str:
    return f"f32[{','.join(map(str, array.shape))}]"


@pytest.mark.parametrize("name", WINDOWS)
def test_a_convolution_and_its_gradients(name: str) -> None:
    function, window, groups = WINDOWS[name]
    image, kernel = normal(2, 9, 11, 4), normal(8, 3, 2, 4 // groups, seed=1)
    wanted, pull = jax.vjp(function, image, kernel)
    back = normal(*wanted.shape, seed=2)
    rest = f", window={{size=3x2{window}}}, dim_labels=b01f_o01i->b01f"
    rest += f", feature_group_count={groups}" if groups > 1 else ""
    to_image, to_kernel = pull(jnp.asarray(back))
    for target, given, expected in (
        ("__cudnn$convForward", (image, kernel), wanted),
        ("__cudnn$convBackwardInput", (back, kernel), to_image),
        ("__cudnn$convBackwardFilter", (image, back), to_kernel),
    ):
        result = f"({written(expected)}, u8[16])"
        text = module(result, *map(written, given), target=target, rest=rest + told())
        made, workspace = run(text, *given)
        np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-4)
        assert workspace.shape == (16,)


def test_gradients_where_the_filter_is_reversed() -> None:
    image, kernel = normal(2, 9, 11, 4), normal(8, 3, 3, 4, seed=1)
    function = convolve((1, 1), "SAME")
    wanted, pull = jax.vjp(lambda a, k: function(a, k[:, ::-1, ::-1]), image, kernel)
    back = normal(*wanted.shape, seed=2)
    to_image, to_kernel = pull(jnp.asarray(back))
    rest = ", window={size=3x3 pad=1_1x1_1 rhs_reversal=1x1}, dim_labels=b01f_o01i->b01f" + told()
    for target, given, expected in (
        ("__cudnn$convForward", (image, kernel), wanted),
        ("__cudnn$convBackwardInput", (back, kernel), to_image),
        ("__cudnn$convBackwardFilter", (image, back), to_kernel),
    ):
        result = f"({written(expected)}, u8[0])"
        text = module(result, *map(written, given), target=target, rest=rest)
        np.testing.assert_allclose(run(text, *given)[0], expected, rtol=1e-4, atol=1e-4)


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "kNone": lambda x: x,
    "kRelu": jax.nn.relu,
    "kRelu6": jax.nn.relu6,
    "kElu": jax.nn.elu,
    "kLeakyRelu": lambda x: jnp.where(x > 0, x, 0.25 * x),
}
SAME = ", window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_o01i->b01f"


@pytest.mark.parametrize("mode", ACTIVATIONS)
def test_a_convolution_with_another_input_a_bias_and_an_activation(mode: str) -> None:
    image, kernel = normal(2, 5, 5, 4), normal(4, 3, 3, 4, seed=1)
    bias, side = normal(4, seed=2), normal(2, 5, 5, 4, seed=3)
    shape = written(image)
    text = module(
        f"({shape}, u8[0])",
        *map(written, (image, kernel, bias, side)),
        target="__cudnn$convBiasActivationForward",
        rest=SAME + told(mode, 2.5, 0.5, 0.25),
    )
    made, _ = run(text, image, kernel, bias, side)
    wanted = ACTIVATIONS[mode](2.5 * convolve((1, 1), "SAME")(image, kernel) + 0.5 * side + bias)
    np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-4)


def test_what_follows_a_convolution_of_16_bits_is_not_rounded_before() -> None:
    image, kernel = (normal(*each).astype(np.float16) for each in ((2, 5, 5, 4), (4, 3, 3, 4)))
    bias = (1000 * normal(4, seed=2)).astype(np.float16)
    text = module(
        "(f16[2,5,5,4], u8[0])",
        "f16[2,5,5,4]",
        "f16[4,3,3,4]",
        "f16[4]",
        target="__cudnn$convBiasActivationForward",
        rest=SAME + told(),
    )
    made, _ = run(text, image, kernel, bias)
    wide = convolve((1, 1), "SAME")(image.astype(np.float32), kernel.astype(np.float32))
    np.testing.assert_array_equal(made, (wide + bias.astype(np.float32)).astype(np.float16))


def test_convolutions_are_rounded_as_the_target_does_unless_asked_not_to() -> None:
    image, kernel = normal(2, 5, 5, 4), normal(4, 3, 3, 4, seed=1)
    shapes = (f"({written(image)}, u8[0])", written(image), written(kernel))
    rest = SAME + told()
    exact = convolve((1, 1), "SAME")(image, kernel)
    rounded = convolve((1, 1), "SAME")(*(lax.reduce_precision(x, 8, 10) for x in (image, kernel)))
    text = module(*shapes, target="__cudnn$convForward", rest=rest)
    made = run(text, image, kernel, arithmetic=TF32)[0]
    np.testing.assert_allclose(made, rounded, rtol=1e-5, atol=1e-5)
    assert np.abs(made - exact).max() > 1e-4
    rest = f", operand_precision={{highest,highest}}{rest}"
    text = module(*shapes, target="__cudnn$convForward", rest=rest)
    made = run(text, image, kernel, arithmetic=TF32)[0]
    np.testing.assert_allclose(made, exact, rtol=1e-5, atol=1e-5)


def test_an_activation_that_is_not_known_is_named() -> None:
    text = module(
        "(f32[2,5,5,4], u8[0])",
        *("f32[2,5,5,4]", "f32[4,3,3,4]", "f32[4]"),
        target="__cudnn$convBiasActivationForward",
        rest=SAME + told("kBandPass"),
    )
    with pytest.raises(NotKnownError, match=r"^a convolution with the activation kBandPass$"):
        translate(text)
