"""How a chip multiplies: to what the numbers are rounded before, and how often.

The compiler's text says of each product at which precision it is asked for; this table says what a
chip makes of that.

- TPU: the matrix unit multiplies bfloat16 and adds in float32. At default precision float32 inputs
  are rounded to bfloat16 once; "high" takes three products of parts in bfloat16, "highest" six
  (jax.lax.Precision; the parts are those of Henry, Heinecke and Tang, "Leveraging the bfloat16
  artificial intelligence datatype for higher-precision computations", 2019).
- NVIDIA: from compute capability 8.0 on, float32 products at default and at "high" precision are
  of TF32, 10 bits of mantissa; at "highest", and before 8.0, of float32 (jax.lax.Precision; CUDA C
  Programming Guide, "Alternate Floating Point"). Products that XLA:GPU leaves in a loop or a
  reduction are of float32 always: there no tensor core is used.

Sums of products are in float32 on all of these. Their order is the hardware's own: results differ
from a chip's in the last bits, within the bounds of `numerics`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jitcount.targets.names import Target

BFLOAT16 = "bfloat16"
TF32 = "TF32"

BITS = {BFLOAT16: (8, 7), TF32: (8, 10)}
"""Of exponent and mantissa."""

# Which parts of the left are multiplied with which of the right: part 0 is the number rounded,
# part 1 what that leaves, rounded, and so on.
_ONCE = ((0, 0),)
_THREE = ((0, 0), (0, 1), (1, 0))
_SIX = ((0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (2, 0))


@dataclass(frozen=True, slots=True)
class Rounding:
    """What happens to float32 inputs of a product."""

    to: str
    passes: tuple[tuple[int, int], ...] = _ONCE

    @property
    def text(self) -> str:
        """For people."""
        times = {1: "", 3: ", three passes", 6: ", six passes"}[len(self.passes)]
        return f"{self.to}{times}"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Of one kind of chip."""

    products: dict[str, Rounding | None]
    """By the precision asked for; None where all bits are kept."""

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


def arithmetic_of(target: Target) -> Arithmetic:
    """How a target computes."""
    if target.platform == "tpu":
        return _TPU
    capability = getattr(target.chip, "capability", None)
    return _TF32 if capability is not None and capability >= (8, 0) else EXACT
