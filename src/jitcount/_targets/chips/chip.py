"""What is asked of a chip, whichever it is: its name, its sizes, its compiler.

All else in this room speaks of a `Chip`; what holds for one kind only is in that kind's file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Tool:
    """An executable that a compiler calls and does not bring."""

    name: str
    package: str
    """What pip installs it under, in a folder ``*/bin`` of this package."""

    folders: tuple[str, ...]
    """Where the compiler looks for it beside the PATH."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """What a platform's compiler comes in."""

    compiler: str
    """For people: ``"XLA:TPU"``."""

    modules: tuple[str, ...]
    """Python's modules, any of which will do; none where the compiler comes with JAX itself."""

    command: str
    """What installs it, with its tools."""

    tools: tuple[Tool, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    """What it wants to find there when it is loaded."""

    chatter: tuple[str, ...] = ()
    """Parts of the lines that it prints at each start, and that say nothing of its end."""


@dataclass(frozen=True, slots=True)
class Machine:
    """So many of a chip, together."""

    devices: int
    asked: dict[str, Any]
    """How JAX is asked for it: the arguments of `get_topology_desc`."""


class Chip(Protocol):
    """A kind of device to compile for; plain data, as are the answers."""

    @property
    def name(self) -> str:
        """As users write it, behind the platform: ``"v5e"``."""

    @property
    def platform(self) -> str:
        """As JAX and users write it: ``"tpu"``."""

    @property
    def plugin(self) -> Plugin:
        """What its compiler comes in: the same for all chips of a platform."""

    @property
    def description(self) -> str:
        """For people: ``"TPU v5e"``."""

    @property
    def smallest(self) -> str:
        """The smallest size that there is, as users write it: ``"2x2"``."""

    def size_of(self, text: str, target: str, /) -> tuple[int, ...]:
        """The size that the user wrote in the name of a target.

        Raises:
            ValueError: there is no such size; the text names the target, and one that there is.
        """

    def machine(self, size: tuple[int, ...], devices: int, /) -> Machine:
        """The machine of that size; without one, the smallest that has so many devices."""


def sides(text: str) -> tuple[int, ...]:
    """The numbers of a size; nothing where it is none.

    >>> sides("16x8"), sides("8"), sides("0x8"), sides("many")
    ((16, 8), (8,), (), ())
    """
    parts = text.split("x")
    found = tuple(int(part) for part in parts if part.isdecimal() and int(part) > 0)
    return found if len(found) == len(parts) else ()
