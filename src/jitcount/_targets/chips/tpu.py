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
        """The layout of a slice, in chips, that the user wrote."""
        size = sides(text)
        # A host holds a square of two by two chips.
        if len(size) == len(self.layout) and not any(side % 2 for side in size[:2]):
            return size
        known = f"{self.platform}:{self.name}"
        raise ValueError(
            f"target {target!r} has no such layout: {known} is laid out like "
            f"{known}:{self.smallest}, the first two sides even"
        )

    def machine(self, size: tuple[int, ...], devices: int) -> Machine:
        """A slice of that layout, or the smallest that is large enough."""
        layout = list(size or self.layout)
        while not size and math.prod(layout) * self.devices_per_chip < devices:
            # The shortest side, the last of equals: 2x2, 2x4, 4x4; 2x2x1, 2x2x2, 2x2x4, 2x4x4.
            shortest = min(reversed(range(len(layout))), key=lambda side: layout[side])
            layout[shortest] *= 2
        name = f"{self.system}:{_written(layout)}"
        return Machine(
            math.prod(layout) * self.devices_per_chip,
            {"platform": self.platform, "topology_name": name, **self.options},
        )


def _written(layout: tuple[int, ...] | list[int]) -> str:
    return "x".join(map(str, layout))


TPUS = (
    # With "megacore" the two cores of a chip are one device, as they are for JAX on a real v4.
    Tpu("v4", "v4", (2, 2, 1), ("TPU v4",), options={"chip_config_name": "megacore"}),
    Tpu("v5e", "v5e", (2, 2), ("TPU v5 lite", "TPU v5e")),
    Tpu("v5p", "v5p", (2, 2, 1), ("TPU v5", "TPU v5p")),
    Tpu("v6e", "v6e", (2, 2), ("TPU v6 lite", "TPU v6e")),
    Tpu("7x", "tpu7x", (2, 2, 1), ("TPU7x", "TPU 7x", "TPU v7x"), devices_per_chip=2),
)
