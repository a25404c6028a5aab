"""Google's TPUs; libtpu knows all figures of a chip by its name."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

from jitcount._targets.chips.chip import Machine, Plugin, sides

PLUGIN = Plugin(
    compiler="XLA:TPU",
    modules=("libtpu",),
    command='pip install "jax[tpu]"',
    environment={
        # Without these libtpu asks a cloud machine's metadata server, and prints that it got none.
        "TPU_SKIP_MDS_QUERY": "1",
        "TPU_ACCELERATOR_TYPE": "v5litepod-4",
        "TPU_WORKER_HOSTNAMES": "localhost",
        # A TPU is one process's at a time; its compiler need not be.
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "true",
        "TPU_STDERR_LOG_LEVEL": "3",
        "TPU_MIN_LOG_LEVEL": "3",
    },
)


@dataclass(frozen=True, slots=True)
class Tpu:
    """A kind of TPU."""

    name: str
    system: str
    """The chip's name as libtpu writes it."""

    layout: tuple[int, ...]
    """The smallest slice, in chips: one host's."""

    device_kinds: tuple[str, ...]
    """What JAX calls a real one: `jax.Device.device_kind`."""

    most: int
    """How many chips the largest slice has whose number is 4, 8, 16, and so on."""

    devices_per_chip: int = 1
    options: dict[str, Any] = field(default_factory=dict)

    platform: ClassVar[str] = "tpu"
    plugin: ClassVar[Plugin] = PLUGIN

    @property
    def description(self) -> str:
        """The chip's name, as people know it."""
        return f"TPU {self.name}"

    @property
    def smallest(self) -> str:
        """The smallest slice: one host."""
        return _written(self.layout)

    def size_of(self, text: str, target: str) -> tuple[int, ...]:
        """The layout of a slice, in chips, that the user wrote; or how many chips it has."""
        size = sides(text)
        if len(size) == 1:
            if size[0] in self._slices():
                return self._slices()[size[0]]
        # A host holds a square of two by two chips.
        elif len(size) == len(self.layout) and not any(side % 2 for side in size[:2]):
            return size
        known = f"{self.platform}:{self.name}"
        *numbers, last = map(str, self._slices())
        raise ValueError(
            f"target {target!r} has no such size: {known} has {', '.join(numbers)} or {last} "
            f"chips, or a layout like {known}:{self.smallest}, the first two sides even"
        )

    def machine(self, size: tuple[int, ...], devices: int) -> Machine:
        """A slice of that layout, or the smallest that is large enough."""
        layout = size or self.layout
        while not size and math.prod(layout) * self.devices_per_chip < devices:
            layout = _doubled(layout)
        name = f"{self.system}:{_written(layout)}"
        return Machine(
            math.prod(layout) * self.devices_per_chip,
            {"platform": self.platform, "topology_name": name, **self.options},
        )

    def _slices(self) -> dict[int, tuple[int, ...]]:
        """By the number of their chips, how slices are laid out."""
        layout, found = self.layout, {}
        while (chips := math.prod(layout)) <= self.most:
            found[chips] = layout
            layout = _doubled(layout)
        return found


def _doubled(layout: tuple[int, ...]) -> tuple[int, ...]:
    """The next larger layout.

    >>> _doubled((2, 2)), _doubled((2, 4)), _doubled((2, 2, 1))
    ((2, 4), (4, 4), (2, 2, 2))
    """
    # The shortest side, the last of equals: 2x2, 2x4, 4x4; 2x2x1, 2x2x2, 2x2x4, 2x4x4.
    shortest = min(reversed(range(len(layout))), key=lambda side: layout[side])
    return tuple(length * (1 + (side == shortest)) for side, length in enumerate(layout))


def _written(layout: tuple[int, ...]) -> str:
    return "x".join(map(str, layout))


TPUS = (
    # With "megacore" the two cores of a chip are one device, as they are for JAX on a real v4.
    Tpu("v4", "v4", (2, 2, 1), ("TPU v4",), 4096, options={"chip_config_name": "megacore"}),
    Tpu("v5e", "v5e", (2, 2), ("TPU v5 lite", "TPU v5e"), 256),
    Tpu("v5p", "v5p", (2, 2, 1), ("TPU v5", "TPU v5p"), 4096),
    Tpu("v6e", "v6e", (2, 2), ("TPU v6 lite", "TPU v6e"), 256),
    Tpu("7x", "tpu7x", (2, 2, 1), ("TPU7x", "TPU 7x", "TPU v7x"), 4096, devices_per_chip=2),
)
