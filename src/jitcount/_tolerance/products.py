"""How products round their inputs: on a chip by default, or to a format."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitcount._emulate.arithmetic import BITS, Rounding, arithmetic_of
from jitcount._targets.names import parse

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitcount._tolerance.lanes import Lanes

    InputRounding = Callable[[Lanes, np.ndarray, str], np.ndarray]
    """Takes the lanes, an input and the precision that is asked for; returns the input rounded."""

FLOAT32 = "float32"
_FORMATS = {name.lower(): name for name in BITS}

# What so many passes keep of a number: one part of it, two, or three.
_PARTS = {1: 1, 3: 2, 6: 3}


def rounding_of_products(name: str) -> InputRounding | None:
    """What happens to the inputs of products; None where nothing does.

    Raises:
        ValueError: there is no such format or target.
    """
    if name == FLOAT32:
        return None
    if name.lower() in _FORMATS:
        table: dict[str, Rounding | None] = {"default": Rounding(_FORMATS[name.lower()])}
    else:
        try:
            table = arithmetic_of(parse(name)).products
        except ValueError as error:
            raise ValueError(
                f"products={name!r} is neither float32, bfloat16 or TF32 nor a target: {error}"
            ) from None

    def rounded(lanes: Lanes, values: np.ndarray, precision: str) -> np.ndarray:
        rounding = table.get(precision)
        if rounding is None or values.dtype != np.float64:
            return values
        bits = BITS[rounding.to][1]
        parts = _PARTS[len(rounding.passes)]
        return lanes.kept(values, parts * (bits + 1) - 1)

    return rounded
