"""The user's line that an instruction comes from, by the tables of an optimised module."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from jitcount.observe.call_site import UNKNOWN_SITE, CallSite, owner_of, site_at


@dataclass
class Places:
    """Looks lines up: by ``stack_frame_id`` in the tables, or as the instruction itself says."""

    tables: dict[str, list[str]]

    def of(self, metadata: dict[str, str]) -> CallSite:
        """The innermost line of the user's; where there is none, of a library's."""
        if "stack_frame_id" in metadata and self.tables:
            return self._users(int(metadata["stack_frame_id"]))
        if "source_file" in metadata:
            file = metadata["source_file"].strip('"')
            line = int(metadata.get("source_line", "0"))
            return CallSite(f"{file.rpartition('/')[2]}:{line}", file, line)
        return UNKNOWN_SITE

    def _users(self, number: int) -> CallSite:
        library = UNKNOWN_SITE
        while 0 < number <= len(self._frames):
            location, number = self._frames[number - 1]
            file, line, function = self._locations[location - 1]
            owner = owner_of(file)
            if owner == "user":
                return site_at(file, line, function)
            if owner == "library" and library is UNKNOWN_SITE:
                library = site_at(file, line, function)
        return library

    @cached_property
    def _frames(self) -> list[tuple[int, int]]:
        """Of each frame, its location, and the frame that called it: 0 for none."""
        return [
            (_number(row, "file_location_id"), _number(row, "parent_frame_id") - 1)
            for row in self.tables.get("StackFrames", [])
        ]

    @cached_property
    def _locations(self) -> list[tuple[str, int, str]]:
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
