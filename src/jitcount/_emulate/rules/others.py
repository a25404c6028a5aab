"""Operations with an algorithm of their own: transforms, factorisations, random bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._emulate.translate import rule
from jitcount._emulate.writer import array
from jitcount._hlo.parser import Shape

if TYPE_CHECKING:
    from jitcount._emulate.translate import Translation
    from jitcount._emulate.writer import Value, Writer
    from jitcount._hlo.parser import Instruction


@rule("fft")
def _fft(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    kind = instruction.attributes["fft_type"]
    how = (
        f"fft_length = {array(instruction.numbers('fft_length'))}, "
        f"fft_type = #stablehlo<fft_type {kind}>"
    )
    return writer.op("fft", operands, instruction.shape.of(), how)


@rule("cholesky")
def _cholesky(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    lower = instruction.attributes.get("lower", "false")
    return writer.op("cholesky", operands, instruction.shape.of(), f"lower = {lower}")


@rule("triangular-solve")
def _triangular_solve(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> Value:
    get = instruction.attributes.get
    how = (
        f"left_side = {get('left_side', 'false')}, lower = {get('lower', 'false')}, "
        f"transpose_a = #stablehlo<transpose {get('transpose_a', 'NO_TRANSPOSE')}>, "
        f"unit_diagonal = {get('unit_diagonal', 'false')}"
    )
    return writer.op("triangular_solve", operands, instruction.shape.of(), how)


@rule("rng-bit-generator")
def _random_bits(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Value]
) -> tuple[Value, ...]:
    """Those whose algorithm is known are the same everywhere."""
    algorithm = instruction.attributes.get("algorithm", "rng_default")
    names = {"rng_philox": "PHILOX", "rng_three_fry": "THREE_FRY"}
    if algorithm not in names or not isinstance(instruction.shapes, tuple):
        raise ValueError(f"random bits by {algorithm}, which is the hardware's own")
    how = f"rng_algorithm = #stablehlo<rng_algorithm {names[algorithm]}>"
    shapes = [shape.of() for shape in instruction.shapes if isinstance(shape, Shape)]
    return tuple(writer.ops("rng_bit_generator", operands, shapes, how))
