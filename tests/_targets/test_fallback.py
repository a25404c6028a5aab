"""What XLA:GPU fails at only because there is no device is compiled again without Triton."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jitcount._jax.lowering import bytecode_of, product_stacks
from jitcount._targets import fallback
from jitcount._targets.fallback import compile_or_fall_back
from jitcount._targets.protocol import WithoutTriton

TILES = "INTERNAL: Couldn't find output tile sizes that satisfy hlo: %dot.7 = f32[8,8] dot(%a, %b)"


class Compiler:
    """Fails with a text as long as Triton may be used; says what a product is named."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.options: list[dict[str, Any]] = []

    def __call__(self, module: bytes, _: Sequence[Any], __: Any, how: Any, ___: str) -> str:
        self.options.append(dict(how))
        if how.get("xla_gpu_enable_triton_gemm", True):
            named = ', metadata={op_name="product 1"}' if b"product 1" in module else ""
            raise RuntimeError(self.text + named)
        return "made"


def operation_of(lowered: Any) -> Any:
    return lowered.compiler_ir("stablehlo").operation


def module() -> bytes:
    def two(x: jax.Array, y: jax.Array) -> jax.Array:
        return (x @ y) @ y

    lowered = jax.jit(two).lower(np.ones((4, 4), np.float32), np.ones((4, 4), np.float32))
    return bytecode_of(operation_of(lowered))


def test_it_is_compiled_without_triton_and_says_for_which_product(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiler = Compiler(TILES)
    monkeypatch.setattr(fallback, "compile_module", compiler)
    found = compile_or_fall_back(module(), [], ((), ()), {"a": 1}, "cuda")
    assert found == ("made", WithoutTriton(product=1))
    without = {"a": 1, "xla_gpu_enable_triton_gemm": False}
    assert compiler.options == [{"a": 1}, without, {"a": 1}]


@pytest.mark.parametrize(
    ("text", "platform"),
    [(TILES, "tpu"), ("INTERNAL: Failed to compute symbolic tile", "cuda"), ("no F64", "cuda")],
)
def test_what_fails_on_a_device_too_is_not(
    text: str, platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = Compiler(text)
    monkeypatch.setattr(fallback, "compile_module", compiler)
    with pytest.raises(RuntimeError, match=text.partition(":")[0]):
        compile_or_fall_back(module(), [], ((), ()), {}, platform)
    assert compiler.options == [{}]


def test_what_fails_without_triton_too_has_the_first_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> None:
        raise RuntimeError(TILES if not arguments[3] else "another")

    monkeypatch.setattr(fallback, "compile_module", fail)
    with pytest.raises(RuntimeError, match="Couldn't find output tile sizes"):
        compile_or_fall_back(module(), [], ((), ()), {}, "cuda")


def test_the_stack_of_a_product_goes_on_where_its_function_is_called() -> None:
    def two(x: jax.Array) -> jax.Array:
        y = x @ x
        return jnp.einsum("ij,jk->ik", y, x)

    lowered = jax.jit(two).lower(np.ones((4, 4), np.float32))
    stacks = product_stacks(operation_of(lowered))
    first = two.__code__.co_firstlineno
    places = [[frame[:2] for frame in stack] for stack in stacks]
    for line in (first + 1, first + 2):
        assert sum((__file__, line) in each for each in places) == 1
