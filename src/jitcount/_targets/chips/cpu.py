"""This machine's own compiler as a target, for tests: every machine has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from jitcount._targets.chips.chip import Machine, Plugin


@dataclass(frozen=True, slots=True)
class Cpu:
    """This machine's CPU, as any number of devices."""

    name: ClassVar[str] = ""
    platform: ClassVar[str] = "cpu"
    plugin: ClassVar[Plugin] = Plugin("XLA:CPU", modules=(), command="pip install jax")
    description: ClassVar[str] = "this machine"
    smallest: ClassVar[str] = "1"

    def size_of(self, _text: str, _target: str) -> tuple[int, ...]:
        """No size: a machine has as many of these devices as are asked for."""
        return ()

    def machine(self, _size: tuple[int, ...], devices: int) -> Machine:
        """A machine with as many devices as are asked for."""
        return Machine(devices, {"platform": self.platform, "devices": devices})
