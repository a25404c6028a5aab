"""Operations with an algorithm of their own: transforms, factorisations, random bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._emulate.translate import rule
from jitcount._emulate.writer import array

if TYPE_CHECKING:
    from jitcount._emulate.translate import Context
    from jitcount._emulate.writer import Value


@rule("fft")
def _fft(context: Context) -> Value:
    length, kind = array(context.numbers("fft_length")), context.attributes["fft_type"]
    return context.same(f"fft_length = {length}, fft_type = #stablehlo<fft_type {kind}>")


@rule("cholesky")
def _cholesky(context: Context) -> Value:
    return context.same(f"lower = {context.attributes.get('lower', 'false')}")


@rule("triangular-solve")
def _triangular_solve(context: Context) -> Value:
    get = context.attributes.get
    return context.same(
        f"left_side = {get('left_side', 'false')}, lower = {get('lower', 'false')}, "
        f"transpose_a = #stablehlo<transpose {get('transpose_a', 'NO_TRANSPOSE')}>, "
        f"unit_diagonal = {get('unit_diagonal', 'false')}"
    )


@rule("rng-bit-generator")
def _random_bits(context: Context) -> tuple[Value, ...]:
    """Random bits by an algorithm that is known: they are the same everywhere."""
    algorithm = context.attributes.get("algorithm", "rng_default")
    names = {"rng_philox": "PHILOX", "rng_three_fry": "THREE_FRY"}
    if algorithm not in names or not isinstance(context.instruction.shapes, tuple):
        raise ValueError(f"random bits by {algorithm}, which is the hardware's own")
    how = f"rng_algorithm = #stablehlo<rng_algorithm {names[algorithm]}>"
    return tuple(context.writer.ops("rng_bit_generator", context.arrays, context.results, how))
