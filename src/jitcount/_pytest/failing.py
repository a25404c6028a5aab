"""How a test fails over what it compiled, and what its report then shows.

Tables and their words are loaded here, for tests that hold a count, before they begin.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

import pytest
import rich.cells  # noqa: F401 (what measures tables, not while a test has its way with imports)

from jitcount._explain.summary import in_a_line, is_first
from jitcount._pytest import github
from jitcount._pytest.plugin import REFUSED, Refused, log_of
from jitcount._pytest.tables import differences, in_short, surplus
from jitcount._show.log_table import log_table
from jitcount._show.parts import Heading, Note
from jitcount._show.profile_table import loop_sentence
from jitcount._show.terminal import render, width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._explain.compile import Compile
    from jitcount._ledger.budget import Counts
    from jitcount._show.parts import Part


def fail(  # noqa: PLR0913 (keywords, each of its own)
    item: pytest.Item,
    rule: str,
    expected: Counts | None,
    compiles: Sequence[Compile],
    *,
    what: str = "",
    for_first_calls: str = "",
) -> NoReturn:
    """Fail a test, with what it compiled and what it should have; pytest sums up the first line.

    Args:
        item: the test.
        rule: what it was held to.
        expected: how often each function may be compiled, where the rule says that.
        compiles: what was compiled.
        what: all of it in one line, where that does not follow from what is expected.
        for_first_calls: what to do about these.
    """
    what = what or in_short(expected or {}, compiles)
    below = differences(rule, expected, compiles, for_first_calls)
    _refuse(item, Refused(what, surplus(expected, compiles)), below)


def fail_grown(item: pytest.Item, rule: str, what: str, programs: Sequence[Compile]) -> NoReturn:
    """Fail a test whose programs have more operations than they may, with what is unrolled."""
    below: list[Part] = [Heading(rule)]
    below += [Note(loop_sentence(each.loops[0]), depth=1) for each in programs if each.loops]
    below.append(Note("→ --compile-update puts what it has now into the budget", depth=1))
    _refuse(item, Refused(what, programs), below)


def _refuse(item: pytest.Item, refused: Refused, below: Sequence[Part]) -> NoReturn:
    item.stash[REFUSED] = refused
    pytest.fail(_rendered([Note(refused.what), *below]), pytrace=False)


def _rendered(parts: Sequence[Part]) -> str:
    # Not to what captures a test's output, but where pytest shows it in the end.
    return render(parts, width(), dense=True, stream=sys.__stdout__)


def report_failure(item: pytest.Item, report: pytest.TestReport) -> None:
    """Show with a failed test what it compiled and why, and tell GitHub, where that listens."""
    log = log_of(item)
    if not log.compiles and "compiles" not in getattr(item, "fixturenames", ()):
        return
    refused = item.stash.get(REFUSED, None)
    # What a failure of ours has said of causes and remedies is not said again.
    shown = log_table(log.compiles, with_advice=refused is None)
    report.sections.append(("compiles", _rendered(shown)))
    if not github.in_github_actions():
        return
    if refused is None and "compiles" in getattr(item, "fixturenames", ()):
        # It was most likely a count that the test itself did not hold.
        again = [compiled for compiled in log.compiles if not is_first(compiled)]
        refused = Refused("; ".join(map(_recompiled, again)), again)
    if refused is not None and refused.beyond:
        github.attach(report, *refused)


def _recompiled(compiled: Compile) -> str:
    return f"{compiled.function}: {in_a_line(compiled.causes)}"
