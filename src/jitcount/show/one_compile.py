"""One compile by itself, with all that is said of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount.show.parts import Heading, Note, Part
from jitcount.show.text import name_of, seconds, tone_of_causes

if TYPE_CHECKING:
    from jitcount.explain.compile import Compile


def one_compile(compiled: Compile) -> list[Part]:
    """What it was, where and how long, then each cause with its advice."""
    arrays = ", ".join(compiled.signature)
    phases = ("trace", compiled.trace_s), ("lower", compiled.lower_s), ("XLA", compiled.compile_s)
    took = ", ".join(f"{name} {seconds(value)}" for name, value in phases)
    via = f", asked for by {compiled.via}" if compiled.via else ""
    tone = tone_of_causes(compiled)
    parts: list[Part] = [
        Heading(f"{name_of(compiled)}({arrays})"),
        Note(f"at {compiled.call_site}{via}"),
        Note(f"{seconds(compiled.total_s)} on {compiled.platform} ({took})"),
    ]
    for cause in compiled.causes:
        parts.append(Note(str(cause), depth=1, tone=tone))
        parts += [Note(f"→ {cause.advice}", depth=2)] if cause.advice else []
    return parts
