"""How a chip multiplies: to what the numbers are rounded before, and how often.

The compiler's text says of each product at which precision it is asked for; this table says what a
chip makes of that. Where each row comes from, and all else that is known of a chip's arithmetic, is
in `facts`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jitcount._targets.names import Target

BFLOAT16 = "bfloat16"
TF32 = "TF32"

BITS = {BFLOAT16: (8, 7), TF32: (8, 10)}
"""The bits of exponent and mantissa, by format."""

TIES_AWAY = frozenset({TF32})
"""The formats that round a number halfway between two to the larger; others take the even one."""

# Which parts of the left are multiplied with which of the right: part 0 is the number rounded,
# part 1 what that leaves, rounded, and so on.
_ONCE = ((0, 0),)
_THREE = ((0, 0), (0, 1), (1, 0))
_SIX = ((0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (2, 0))


@dataclass(frozen=True, slots=True)
class Rounding:
    """What happens to float32 inputs of a product."""

    to: str
    """The format that they are rounded to."""

    passes: tuple[tuple[int, int], ...] = _ONCE
    """The products that are added up, each of a part of the left and a part of the right."""

    @property
    def text(self) -> str:
        """The rounding in words: ``"bfloat16, three passes"``."""
        times = {1: "", 3: ", three passes", 6: ", six passes"}[len(self.passes)]
        return f"{self.to}{times}"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """How one kind of chip multiplies float32."""

    products: dict[str, Rounding | None]
    """The rounding of inputs, by the precision asked for; None where all bits are kept."""

    in_loops: bool
    """Whether products outside of a matrix unit, in loops, are rounded too."""


EXACT = Arithmetic({}, in_loops=False)
"""Every product of float32 keeps all bits."""

_TPU = Arithmetic(
    {
        "default": Rounding(BFLOAT16),
        "high": Rounding(BFLOAT16, _THREE),
        "highest": Rounding(BFLOAT16, _SIX),
    },
    in_loops=True,
)
_TF32 = Arithmetic({"default": Rounding(TF32), "high": Rounding(TF32)}, in_loops=False)


BY_ALGORITHM = {
    "dot_bf16_bf16_f32": Rounding(BFLOAT16),
    "dot_tf32_tf32_f32": Rounding(TF32),
    "dot_f32_f32_f32": None,
}
"""The rounding of products whose algorithm the program names (`jax.lax.DotAlgorithmPreset`)."""


def arithmetic_of(target: Target) -> Arithmetic:
    """How a target's chip multiplies."""
    if target.platform == "tpu":
        return _TPU
    capability = getattr(target.chip, "capability", None)
    return _TF32 if capability is not None and capability >= (8, 0) else EXACT
