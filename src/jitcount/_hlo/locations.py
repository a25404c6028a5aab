"""Finds the user's line in what compilers keep of it: stacks, source tables and name stacks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from jitcount._observe.call_site import (
    NOWHERE,
    UNKNOWN_SITE,
    UNKNOWN_SITES,
    CallSite,
    Sites,
    owner_of,
    site_at,
)

Frame = tuple[str, int, str]
"""The file, line and function of a frame."""

Stack = tuple[Frame, ...]
"""The frames of a stack, the innermost first."""

_Place = tuple[str, int]

# JAX writes so many frames of a stack into a program (`jax_traceback_in_locations_limit`).
_WRITTEN = 10


def sites_at(stack: Stack) -> Sites:
    """The innermost line of the user's in a stack, and the innermost of a library inside of it.

    A stack without a line of the user's has the library's in its place.
    """
    library: Frame | None = None
    for frame in stack:
        owner = owner_of(frame[0])
        if owner == "user":
            return Sites(site_at(*frame), NOWHERE if library is None else site_at(*library))
        if owner == "library" and library is None:
            library = frame
    return UNKNOWN_SITES if library is None else Sites(site_at(*library))


@dataclass
class DeepStacks:
    """The whole stacks of a program's equations, which complete those that JAX writes into it.

    JAX writes ten frames at most, and the user's may be further out than a library's ten. It also
    caches what it has lowered of its own functions: a `jax.random.split` has, inside of its call,
    the line of the first one in the process, which may be another program's.
    """

    known: dict[Stack, Stack] = field(default_factory=dict)
    by_line: dict[_Place, Stack] = field(default_factory=dict)
    """Stacks by their innermost line, which is all that releases before 0.8 write."""

    lines: set[_Place] = field(default_factory=set)
    called: set[tuple[_Place, _Place]] = field(default_factory=set)
    """Each line with the one that called it."""

    def add(self, stack: Stack) -> None:
        """Add the whole stack of an equation, without the frames that JAX does not write."""
        if stack:
            places = [frame[:2] for frame in stack]
            self.by_line.setdefault(places[0], stack)
            self.lines.update(places)
            self.called.update(pairwise(places))
        if len(stack) > _WRITTEN:
            self.known.setdefault(_key(stack), stack)

    def whole(self, stack: Stack) -> Stack:
        """The whole stack of a written one, without frames that the rest of it did not call."""
        if len(stack) >= _WRITTEN and (found := self.known.get(_key(stack))) is not None:
            return found
        return self._as_called(stack)

    def _as_called(self, stack: Stack) -> Stack:
        """The frames of a stack that follow from the outermost one that is the program's.

        A frame that the next one did not call comes from a cached function that was written into
        the program. Up to 0.9 what is inside of it has outer frames of its own: they are skipped.
        """
        last = len(stack) - 1
        while last >= 0 and stack[last][:2] not in self.lines:  # frames that called the program
            last -= 1
        if last < 0:  # none of its frames is known
            return stack
        found, inside = [stack[last]], stack[:last]
        while inside:
            by = found[-1][:2]
            depths = range(len(inside) - 1, -1, -1)
            at = next((at for at in depths if (inside[at][:2], by) in self.called), None)
            if at is None:
                break
            found.append(inside[at])
            inside = inside[:at]
        return (*reversed(found), *stack[last + 1 :])


def _key(stack: Stack) -> Stack:
    """A stack's key, by file and line: a function's name is not written the same everywhere."""
    return tuple((file, line, "") for file, line, _ in stack[:_WRITTEN])


@dataclass
class SourceTables:
    """The source tables of an HLO module, in which its instructions' lines are looked up.

    Instructions refer to them by ``stack_frame_id``; in releases before the tables, each has its
    file and line in its own metadata.
    """

    tables: dict[str, list[str]]
    deep: DeepStacks = field(default_factory=DeepStacks)
    _found: dict[int, Sites] = field(default_factory=dict)

    def site_of(self, metadata: dict[str, str]) -> CallSite:
        """The innermost line of the user's that an instruction comes from, or else a library's."""
        return self.sites_of(metadata).user

    def sites_of(self, metadata: dict[str, str]) -> Sites:
        """The user's line that an instruction comes from, and a library's line inside of it."""
        if "stack_frame_id" in metadata and self.tables:
            number = int(metadata["stack_frame_id"])
            if number not in self._found:
                self._found[number] = sites_at(self.stack_of(metadata))
            return self._found[number]
        if "source_file" not in metadata:
            return Sites(UNKNOWN_SITE)
        file = metadata["source_file"].strip('"')
        line = int(metadata.get("source_line", "0"))
        if (file, line) in self.deep.by_line:
            return sites_at(self.deep.by_line[file, line])
        if self.deep.lines:  # another program's
            return UNKNOWN_SITES
        return Sites(CallSite(f"{file.rpartition('/')[2]}:{line}", file, line))

    def stack_of(self, metadata: dict[str, str]) -> Stack:
        """The stack that an instruction comes from; empty in releases before the tables."""
        if "stack_frame_id" not in metadata or not self.tables:
            return ()
        return self.deep.whole(self._stack(int(metadata["stack_frame_id"])))

    def _stack(self, number: int) -> Stack:
        found: list[Frame] = []
        while 0 < number <= len(self._frames):
            location, number = self._frames[number - 1]
            found.append(self._locations[location - 1])
        return tuple(found)

    @cached_property
    def _frames(self) -> list[tuple[int, int]]:
        """The location of each frame, and the number of the frame that called it: 0 for none."""
        return [
            (_number(row, "file_location_id"), _number(row, "parent_frame_id") - 1)
            for row in self.tables.get("StackFrames", [])
        ]

    @cached_property
    def _locations(self) -> list[Frame]:
        files = [row.strip('"') for row in self.tables.get("FileNames", [])]
        functions = [row.strip('"') for row in self.tables.get("FunctionNames", [])]
        return [
            (
                files[_number(row, "file_name_id") - 1],
                _number(row, "line"),
                functions[_number(row, "function_name_id") - 1],
            )
            for row in self.tables.get("FileLocations", [])
        ]


def _number(row: str, name: str) -> int:
    found = re.search(rf"\b{name}=(\d+)", row)
    return int(found[1]) if found else 0


# --- Name stacks: which transformation made an operation, and which function it is in -------------

BACKWARD = "backward pass"
RECOMPUTED = "recomputed for the backward pass"
UNDER_VMAP = "under vmap"

_INNER = re.compile(r"\bjit\(([\w<>.]+)\)")


def transform_in(name_stack: str) -> str:
    """The transformation that made an operation; empty for the line as it was written.

    >>> transform_in("jit(step)/vmap(transpose(jvp()))/mul"), transform_in("jit(step)/jvp()/mul")
    ('backward pass, under vmap', '')
    """
    if "rematted_computation" in name_stack or "remat(" in name_stack:
        kind = RECOMPUTED
    elif "transpose(" in name_stack:
        kind = BACKWARD
    else:
        kind = ""
    under = UNDER_VMAP if "vmap(" in name_stack else ""
    return ", ".join(filter(None, (kind, under)))


def called_in(name_stack: str) -> str:
    """The innermost jitted function that an operation is in; its own name where there is none.

    >>> called_in("jit(step)/jvp(jit(sort))/sort"), called_in("jit(step)/add")
    ('sort', 'add')
    """
    inner = _INNER.findall(name_stack)[1:]
    return inner[-1].lstrip("_") if inner else name_stack.rpartition("/")[2]
