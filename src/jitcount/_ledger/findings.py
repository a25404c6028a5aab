"""What is wrong with one entry of a ledger by itself, without a comparison."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from jitcount._ledger.budget import counts_text
from jitcount._numerics.expected import BETWEEN_RUNS, EXACT
from jitcount._numerics.judging import judge
from jitcount._text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._ledger.ledger import CaseEntry, Result
    from jitcount._numerics.judging import Verdict


REFUSES = (" refuses it: ", " fails at it by an internal error")
"""In a reason why a program was not emulated: the target's own compiler does not take it."""

_BY_CPU = "the CPU's compiler refuses it: "
"""In such a reason: it was taken there, and could not be run here."""


def verdicts(entry: CaseEntry) -> list[Verdict]:
    """The verdict on each result of an entry, against what the case expects."""
    return [judge(result.value, result.expected) for result in entry.results]


def findings(entry: CaseEntry, judged: Sequence[Verdict] | None = None) -> list[str]:
    """What is not as the case expects, a line each; empty if all is.

    A case that a known miscompile makes wrong here must be wrong, or nothing warns users any more
    when the fault is gone, or when the case has ceased to show it. It may also end the compiler.
    """
    lines = _wrong_results(entry, judged)
    refused = [f"as if: {line}" for line in entry.as_on_cpu if any(r in line for r in REFUSES)]
    if entry.known_wrong and not any(_BY_CPU in line for line in refused):
        is_wrong = bool(lines or refused)
        lines = [] if is_wrong else [f"right, and {entry.known_wrong} should make it wrong here"]
        refused = []
    if entry.error:
        return lines
    if entry.expected_compiles is not None:
        wanted = {name: count for name, count in entry.expected_compiles.items() if count}
        if entry.counts() != wanted:
            lines.append(f"compiled {counts_text(entry.counts())}, not {counts_text(wanted)}")
    lines += refused
    return lines + [line for target in entry.targets for line in _refusals(entry, target)]


def _wrong_results(entry: CaseEntry, judged: Sequence[Verdict] | None) -> list[str]:
    if entry.error:
        return [f"it raised {entry.error}"]
    lines = []
    for number, verdict in enumerate(verdicts(entry) if judged is None else judged):
        if not verdict.holds:
            lines.append(f"{which_result(entry.results, number)}{verdict}")
    if entry.unsteady:
        lines.append(entry.unsteady)
    return lines


def which_result(results: Sequence[Result], number: int) -> str:
    """Which of several results something is said of; empty if there is only one."""
    if len(results) == 1:
        return ""
    name = results[number].name
    return f"result {number} ({name}): " if name else f"result {number}: "


def _refusals(entry: CaseEntry, target: str) -> list[str]:
    """The programs that were not compiled for a target; it must compile all of them."""
    lines = []
    for compiled in entry.compiles:
        result = compiled.on.get(target)
        if compiled.from_disk or (result is not None and result.error is None):
            continue
        why = "was not asked" if result is None else one_line(str(result.error))
        signature = ", ".join(compiled.signature)
        lines.append(f"{target} did not compile {compiled.function}({signature}): {why}")
    return lines


def share_of_bound(entry: CaseEntry, judged: Sequence[Verdict] | None = None) -> float | None:
    """The largest share of its bounds that an entry uses; None if its results have none."""
    pairs = zip(entry.results, verdicts(entry) if judged is None else judged, strict=True)
    unbound = {EXACT, BETWEEN_RUNS}  # the latter has one only beside another run
    shares = (v.share for result, v in pairs if result.expected.numerics not in unbound)
    return max(shares, default=None)


def is_unjudged(entry: CaseEntry) -> bool:
    """Whether none of its results is held to anything before another ledger is beside it."""
    return bool(entry.results) and all(
        result.expected.numerics == BETWEEN_RUNS
        or 0 < result.expected.left_out() == math.prod(result.value.shape)
        for result in entry.results
    )


def remarks(entry: CaseEntry) -> list[str]:
    """What of a user's function is not judged, or by a declared bound only, and why: a line each.

    >>> import numpy as np
    >>> from jitcount._ledger.ledger import CaseEntry, Result
    >>> from jitcount._numerics.arrays import encode
    >>> from jitcount._numerics.expected import derived
    >>> ones = np.ones(3, np.float32)
    >>> tolerance = derived("float32", ones, np.array([0, 1, np.nan]), "the branch at a.py:3 flips")
    >>> remarks(CaseEntry(results=(Result(encode(ones), tolerance),)))
    ['1 of 3 elements has no tolerance, and is not judged: the branch at a.py:3 flips']
    """
    lines = []
    for number, result in enumerate(entry.results):
        if none := result.expected.left_out():
            count = math.prod(result.value.shape)
            has, are = ("has", "is") if none == 1 else ("have", "are")
            every = "the only element" if count == 1 else f"{none:,} of {count:,} elements"
            what = f"{every} {has} no tolerance, and {are} not judged"
            lines.append(f"{which_result(entry.results, number)}{what}: {result.expected.why}")
    declared = [r.expected for r in entry.results if r.expected.numerics == BETWEEN_RUNS]
    for why in dict.fromkeys(each.why for each in declared):
        bounds = dict.fromkeys(each.within for each in declared if each.why == why)
        shown = " or ".join(
            f"within {share:g} of the largest magnitude" for share in bounds if share
        )
        what = f"{shown or 'equal to the bit'} between runs"
        lines.append(f"{what}, as declared, not derived{f': {why}' if why else ''}")
    return lines
