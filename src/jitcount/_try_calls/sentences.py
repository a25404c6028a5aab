"""What came of calls under a jit, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount._show.parts import Heading, Note, Part, Tone
from jitcount._show.text import plural, seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._try_calls.trying import Trial

_KEEP = "keep the call as it is"


def trial_parts(trials: Sequence[Trial], not_tried: int = 0) -> list[Part]:
    """A line for each call that was tried; `not_tried` are those that were left out."""
    if not trials and not not_tried:
        return [Heading("Calls under a jit"), Note("none is advised")]
    notes = [Note(sentence(trial), depth=1, tone=_tone(trial)) for trial in trials]
    if not_tried:
        notes.append(Note(f"{plural(not_tried, 'more call')} not tried", depth=1))
    return [Heading("Calls under a jit"), *notes]


def sentence(trial: Trial) -> str:
    """What came of a call under a jit, and what to do."""
    where = f"{trial.call} at {trial.call.site or f'{trial.call.file}:{trial.call.line}'}"
    if trial.not_tried:
        return f"not tried: {where}: {trial.not_tried}"
    if trial.before is None or trial.after is None or trial.results is None:
        return f"tried: {where}: {trial.failed}: {_KEEP}"
    before, after = trial.before, trial.after
    compiles = f"{before.compiles} → {plural(after.compiles, 'compile')}"
    results = trial.results.text
    if not trial.results.is_same:
        return f"tried: {where}: {compiles}, but {results}: {_KEEP}"
    whole, of_call = arrow(before.seconds, after.seconds), arrow(before.call_s, after.call_s)
    if trial.saves and not trial.whole_saves:
        figures = f"the call {of_call} (the whole run {whole}, no more than chance)"
    else:
        figures = f"{whole} (the call {of_call})"
    if trial.saves > 0:
        return f"tried: {where}: {compiles}, {figures}, {results}"
    how = "slower" if trial.saves else "no faster"
    return f"tried: {where}: {compiles} and {how}, {figures}: {_KEEP}"


def arrow(before: float, after: float) -> str:
    """Two durations, with their unit once where it is the same.

    >>> arrow(8.4, 3.1), arrow(1.2, 0.25)
    ('8.4 → 3.1 s', '1.2 s → 250 ms')
    """
    one, other = seconds(before), seconds(after)
    number, _, unit = one.partition(" ")
    return f"{number} → {other}" if unit == other.partition(" ")[2] else f"{one} → {other}"


def _tone(trial: Trial) -> Tone:
    """What can be followed stands out."""
    is_same = trial.results is not None and trial.results.is_same
    return Tone.PLAIN if trial.saves > 0 and is_same else Tone.FAINT
