"""The user's line that an instruction comes from, by the tables of an optimised module."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A line of source; without a file where the module does not say."""

    file: str = ""
    line: int = 0
    function: str = ""


@dataclass
class Places:
    """Looks lines up: by ``stack_frame_id`` in the tables, or as the instruction itself says."""

    tables: dict[str, list[str]]

    def of(self, metadata: dict[str, str]) -> Place:
        """The innermost frame, which is where JAX was called from."""
        if "stack_frame_id" in metadata and self.tables:
            return self._frame(int(metadata["stack_frame_id"]))
        if "source_file" in metadata:
            file = metadata["source_file"].strip('"')
            return Place(file, int(metadata.get("source_line", "0")))
        return Place()

    def _frame(self, number: int) -> Place:
        frames = self._frames
        if not 0 < number <= len(frames):
            return Place()
        location = self._locations[frames[number - 1] - 1]
        return location

    @cached_property
    def _frames(self) -> list[int]:
        """Of each frame, the number of its location."""
        return [_number(row, "file_location_id") for row in self.tables.get("StackFrames", [])]

    @cached_property
    def _locations(self) -> list[Place]:
        files = [row.strip('"') for row in self.tables.get("FileNames", [])]
        functions = [row.strip('"') for row in self.tables.get("FunctionNames", [])]
        return [
            Place(
                files[_number(row, "file_name_id") - 1],
                _number(row, "line"),
                functions[_number(row, "function_name_id") - 1],
            )
            for row in self.tables.get("FileLocations", [])
        ]


def _number(row: str, name: str) -> int:
    found = re.search(rf"\b{name}=(\d+)", row)
    return int(found[1]) if found else 0
