"""The one table of chips that can be compiled for; a kind of chip is a file here, and a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._targets.chips.nvidia import GPUS
from jitcount._targets.chips.tpu import TPUS

if TYPE_CHECKING:
    from jitcount._targets.chips.chip import Chip

CHIPS: tuple[Chip, ...] = (*TPUS, *GPUS)
"""All chips, in the order in which ``jitcount targets`` lists them."""
