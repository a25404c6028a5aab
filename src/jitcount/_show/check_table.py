"""What ``--check`` shows: which programs were compiled wrongly, and which were not compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._show.parts import Heading, Note, Part, Tone
from jitcount._show.text import plural, signature_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._miscompiles.checking import CheckedProgram


_WHAT_NEXT = "→ docs/miscompiles.md has what releases are known to get wrong, and how to avoid it"


def check_table(programs: Sequence[CheckedProgram]) -> list[Part]:
    """A line of sums, then the programs that are wrong, then those that were not compared."""
    wrong = [program for program in programs if program.wrong]
    not_checked = [program for program in programs if program.not_checked]
    compared = len(programs) - len(not_checked)
    compared_with = f"compared with {'its' if compared == 1 else 'their'} operations one by one"
    sums = f"{plural(compared, 'program')} {compared_with}: {len(wrong) or 'none'} wrong"
    return [
        Heading(sums if compared else "No program was compared with its operations one by one"),
        *(Note(f"WRONG: {checked_line(each)}", depth=1, tone=Tone.DIFFERENT) for each in wrong),
        *([Note(_WHAT_NEXT, depth=1)] if wrong else []),
        *(Note(f"not compared: {checked_line(each)}", depth=1) for each in not_checked),
    ]


def checked_line(program: CheckedProgram) -> str:
    """A program and what is wrong with it, or why it was not compared."""
    made = program.compiled
    what = program.wrong or program.not_checked or "right"
    return f"{made.function}({signature_of(made.signature)}) at {made.call_site}: {what}"
