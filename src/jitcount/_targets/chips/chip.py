"""What every kind of chip must have: its name, its sizes, its compiler.

The rest of this room knows only `Chip`; what holds for one kind alone is in that kind's file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Tool:
    """An executable that a compiler calls and does not come with."""

    name: str
    package: str
    """The package in whose folders ``*/bin`` pip installs it."""

    folders: tuple[str, ...]
    """Where the compiler looks for it, beside the PATH."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """The package that has a platform's compiler, and what it needs."""

    compiler: str
    """The compiler's name, as people know it: ``"XLA:TPU"``."""

    modules: tuple[str, ...]
    """Python modules, any of which will do; none where the compiler comes with JAX itself."""

    command: str
    """The command that installs the compiler, with its tools."""

    tools: tuple[Tool, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that it needs when it is loaded."""

    chatter: tuple[str, ...] = ()
    """Parts of lines that it prints at each start; they do not explain how it ended."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A number of chips that work together."""

    devices: int
    topology: dict[str, Any]
    """The arguments of JAX's `get_topology_desc` for it."""


class Chip(Protocol):
    """A kind of device to compile for; all of it is plain data."""

    @property
    def name(self) -> str:
        """The chip's name, as users write it behind the platform: ``"v5e"``."""

    @property
    def platform(self) -> str:
        """The chip's platform, as JAX and users write it: ``"tpu"``."""

    @property
    def plugin(self) -> Plugin:
        """The package of its compiler: the same for all chips of a platform."""

    @property
    def description(self) -> str:
        """The chip's name, as people know it: ``"TPU v5e"``."""

    @property
    def smallest(self) -> str:
        """The smallest machine with this chip, as users write its size: ``"2x2"``."""

    def size_of(self, text: str, target: str, /) -> tuple[int, ...]:
        """The size that the user wrote in the name of a target.

        Raises:
            ValueError: there is no such size; the text names the target, and one that there is.
        """

    def machine(self, size: tuple[int, ...], devices: int, /) -> Machine:
        """The machine of that size; without a size, the smallest that has that many devices."""


def sides(text: str) -> tuple[int, ...]:
    """The numbers of a size, as ``16x8``; empty where the text is no size.

    >>> sides("16x8"), sides("8"), sides("0x8"), sides("many")
    ((16, 8), (8,), (), ())
    """
    parts = text.split("x")
    found = tuple(int(part) for part in parts if part.isdecimal() and int(part) > 0)
    return found if len(found) == len(parts) else ()
