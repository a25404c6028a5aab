"""Where a number goes: by chance, and the same each time.

What is drawn depends on the seed, on the operation, and on the bits of the number itself, as an
arithmetic unit that rounds otherwise would: `exp(x)` is the same wherever it is computed, in one
program or another, with `vmap` or without, and differs from step to step of a loop, because the
numbers do. Sums depend on their place in the program as well: in which order terms are added is up
to the program around them. A few operations on integers are enough, which XLA fuses with the rest.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jitcount._jax.rewriting import Array, Builder

_WORD = 1 << 32


@dataclass(frozen=True, slots=True)
class Chance:
    """Draws for all operations of a program."""

    seed: int
    scale: float
    """How far everything is moved; 1 as far as another backend's rounding may."""

    def coin(self, kind: str, place: int) -> float:
        """A number from 0 up to 1 for an operation as a whole."""
        return self.words(kind, place)[0] / _WORD

    def words(self, kind: str, place: int) -> tuple[int, int]:
        """Two words that are others for each seed, kind and place."""
        state = (self.seed * 0x9E3779B97F4A7C15 + zlib.crc32(kind.encode())) % 2**64
        state = (state + place * 0xD1B54A32D192ED03) % 2**64
        for factor in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):  # as SplitMix64 does
            state = (state ^ state >> 30) * factor % 2**64
        state ^= state >> 31
        return state >> 32, state % _WORD


@dataclass(frozen=True, slots=True)
class Site:
    """An operation that is moved: where its new operations are written, and how they draw."""

    builder: Builder
    chance: Chance
    place: int
    """The number of the operation in its program."""

    @property
    def scale(self) -> float:
        """How far everything is moved."""
        return self.chance.scale

    def bits(self, array: Array, kind: str, place: int = 0) -> Array:
        """32 bits for each element of an array of floats, as signed integers.

        Only the upper ones are worth much.
        """
        found = _folded(self.builder, array)
        factor, shift = self.chance.words(kind, place)
        mixed = self.builder.apply("multiply", found, self.builder.full(_signed(factor | 1), found))
        return self.builder.apply("add", mixed, self.builder.full(_signed(shift), mixed))

    def half(self, array: Array, kind: str) -> Array:
        """True for half of the elements."""
        bits = self.bits(array, kind)
        return self.builder.compare(bits, "LT", self.builder.full(0, bits))

    def evenly(self, array: Array, kind: str, farthest: float) -> Array:
        """A number for each element, up to `farthest` to either side, each as likely."""
        drawn = self.builder.convert(self.bits(array, kind), array.element)
        step = self.builder.full(2 * farthest * self.scale / _WORD, drawn)
        return self.builder.apply("multiply", drawn, step)

    def around(self, array: Array, kind: str, farthest: float) -> Array:
        """A number for each element, up to `farthest` to either side, the middle more likely.

        Another one at each place of the program.
        """
        builder = self.builder
        bits = self.bits(array, kind, self.place + 1)
        shifted = builder.apply("shift_right_logical", bits, builder.full(15, bits))
        other = builder.apply("xor", bits, shifted)
        other = builder.apply("multiply", other, builder.full(0x2C1B3C6D, other))
        one, two = (builder.convert(each, array.element) for each in (bits, other))
        step = builder.full(farthest * self.scale / _WORD, one)
        return builder.apply("multiply", builder.apply("add", one, two), step)


def _folded(builder: Builder, array: Array) -> Array:
    """The bits of each element in 32."""
    if array.element == "f32":
        return builder.bits(array, "i32")
    wide = builder.bits(array, "i64")
    upper = builder.apply("shift_right_logical", wide, builder.full(29, wide))
    return builder.convert(builder.apply("xor", wide, upper), "i32")


def _signed(word: int) -> int:
    return word - _WORD if word >= _WORD // 2 else word
