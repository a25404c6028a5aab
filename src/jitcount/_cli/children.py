"""What ``jitcount run --as-if`` does in the processes that the program starts.

One that is forked has the block of its parent. One that is started anew reads a variable of its
environment as Python starts (`jitcount_autostart`), and begins a block once it has imported JAX.
They may be killed. So they write what became of each program to a folder at once, and the parent
adds it up at the end.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jitcount._show.emulation_table import EmulationSums
from jitcount._show.parts import Note
from jitcount._show.text import plural
from jitcount._text import one_line

if TYPE_CHECKING:
    from jitcount._emulate.result import EmulatedProgram, Emulation
    from jitcount._show.parts import Part

VARIABLE = "JITCOUNT_AS_IF"


class Children:
    """The processes that a program starts while it runs as if on a target."""

    def __init__(self, target: str) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="jitcount-"))
        self._process = os.getpid()
        self._before = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = f"{target} {self._folder}"

    def watch(self, emulation: Emulation) -> None:
        """Write what a fork of this process compiles, too."""
        emulation.on_program = self._write_in_a_fork

    def _write_in_a_fork(self, program: EmulatedProgram) -> None:
        if os.getpid() != self._process:
            _write(self._folder, program)

    @property
    def have_computed(self) -> bool:
        """Whether any has something to tell."""
        return any(self._folder.glob("*.jsonl"))

    def end(self, sums: EmulationSums) -> list[Part]:
        """Add what the children have computed to the sums; returns what else is to be said."""
        if self._before is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = self._before
        own, notes, processes = sums.programs, [], 0
        for file in sorted(self._folder.glob("*.jsonl")):
            read = [_read(line) for line in file.read_text("utf-8").splitlines()]
            processes += any("programs" in each for each in read)
            for each in read:
                if "programs" in each:
                    sums.join(each)
                elif "failed" in each:
                    notes.append(Note(f"as on the CPU: process {file.stem}: {each['failed']}"))
        shutil.rmtree(self._folder, ignore_errors=True)
        if processes:
            where = "another process" if processes == 1 else f"{processes} other processes"
            notes.insert(0, Note(f"{plural(sums.programs - own, 'program')} of these in {where}"))
        return [*notes]


def _read(line: str) -> dict[str, Any]:
    """A line of a child; nothing of one that was killed in the midst of it."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _write(folder: Path, program: EmulatedProgram) -> None:
    _append(folder, EmulationSums.from_programs([program]).plain())


def _append(folder: Path, what: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # the parent has ended
        line = json.dumps(what) + "\n"
        file = os.open(
            folder / f"{os.getpid()}.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600
        )
        try:
            os.write(file, line.encode())
        finally:
            os.close(file)


def begin_in_a_child(value: str) -> None:
    """Compute as if on the target until this process ends; called once it has imported JAX."""
    target, _, place = value.partition(" ")
    folder = Path(place)
    try:
        from jitcount._emulate.as_if import as_if

        emulation = as_if(target).__enter__()
        emulation.on_program = lambda program: _write(folder, program)
    except Exception as error:  # noqa: BLE001 (the program's own import must not fail)
        _append(folder, {"failed": one_line(error)})
