"""Programs as JAX holds them before they are lowered: jaxprs, their equations and their source.

`jax.extend` has a jaxpr's types, but not the debug info, which alone says from which function it
was traced. Where a release takes that away, the source of a program is empty: the backward passes
of two functions of one name are then taken for those of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jitcount._jax.origin import JAX_DIRECTORIES, is_module_of_jax

if TYPE_CHECKING:
    from collections.abc import Iterator

_module_of = vars(type)["__module__"].__get__  # a metaclass of the user's may have another


@dataclass(frozen=True, slots=True)
class Source:
    """The function that a jaxpr was traced from."""

    name: str
    file: str
    line: str

    @property
    def is_jaxs(self) -> bool:
        """Whether it stands in JAX."""
        return self.file.startswith(JAX_DIRECTORIES)


def source_of(jaxpr: object) -> Source | None:
    """Where the function stands that a jaxpr was traced from; None for what is no jaxpr.

    JAX writes it as ``step at /home/me/train.py:42``.
    """
    if not is_module_of_jax(str(_module_of(type(jaxpr)))):  # the user's: none of its code is run
        return None
    info = getattr(getattr(jaxpr, "jaxpr", jaxpr), "debug_info", None)
    text = getattr(info, "func_src_info", None)
    if not text:
        return None
    name, _, place = str(text).partition(" at ")
    file, _, line = place.rpartition(":")
    return Source(name, file, line)


def callbacks(jaxpr: Any) -> Iterator[str]:
    """The primitives that call Python when the program runs, also in the jaxprs inside of it.

    They are known by their names: pure_callback, io_callback, debug_callback, debug_print.
    """
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        name = equation.primitive.name
        if "callback" in name or name == "debug_print":
            yield name
        for value in equation.params.values():
            for part in value if isinstance(value, list | tuple) else (value,):
                if hasattr(getattr(part, "jaxpr", part), "eqns"):
                    yield from callbacks(part)
