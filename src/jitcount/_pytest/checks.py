"""Holds a test to its markers, fails it over what it compiled, and shows that in its report.

What a failure shows is imported here, for tests that hold a count, before they begin.
"""

from __future__ import annotations

import sys
from collections import Counter
from keyword import iskeyword
from typing import TYPE_CHECKING, NoReturn

import pytest
import rich.cells  # noqa: F401 (what measures tables: not while a test has changed how to import)

from jitcount._explain.summary import advice_of, in_a_line, is_first, sentences_of_many
from jitcount._pytest import github
from jitcount._pytest.counting import REFUSED, Refused, compiles_of, log_of
from jitcount._pytest.github import title_of
from jitcount._show.log_table import log_table
from jitcount._show.parts import Count, Heading, Note, Part, Table, figures, words
from jitcount._show.profile_table import loop_sentence
from jitcount._show.terminal import render, width
from jitcount._show.text import plural
from jitcount._targets.result import failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jitcount._explain.compile import Compile
    from jitcount._ledger.budget import Counts
    from jitcount._observe.call_site import CallSite

# More sentences about one line nobody reads.
_MOST_SENTENCES = 4


# --- The markers ----------------------------------------------------------------------------------


def require_usable_markers(item: pytest.Item) -> None:
    """Fail a test at once whose markers make no sense: they would hold it to nothing."""
    for marker in item.iter_markers("compiles"):
        _expected_counts(marker)
    for marker in item.iter_markers("max_compiles"):
        _limit(marker)
    for marker in item.iter_markers("no_compiles"):
        if marker.args or marker.kwargs:
            _refuse_marker(marker, "takes nothing: max_compiles(3) allows some")


def check_markers(item: pytest.Item) -> None:
    """Fail a test that compiled something else than its markers allow."""
    log = log_of(item)
    for marker in item.iter_markers("compiles"):
        expected = _expected_counts(marker)
        if log.counts() != expected:
            rule = f"{item.name} must compile exactly what its marker names"
            fail(item, rule, expected, log.compiles, accept=_to_accept(log.counts()))
    for marker in item.iter_markers("max_compiles"):
        limit = _limit(marker)
        if log.count() > limit:
            rule = f"{item.name} may compile {limit} at most, and compiled {log.count()}"
            last = _made(log.compiles)[-1]
            what = f"{plural(log.count(), 'compile')}, at most {limit}: {last.function}"
            what = f"{what}, {in_a_line(last.causes)}"
            accept = _to_write(f"max_compiles({log.count()})")
            fail(item, rule, None, log.compiles, accept=accept, what=what)
    if item.get_closest_marker("no_compiles") and log.count():
        rule = f"{item.name} must compile nothing, and compiled {log.count()}"
        advice = "call it once in a fixture, before the test"
        accept = _to_write(f"max_compiles({log.count()})", "no_compiles")
        fail(item, rule, {}, log.compiles, accept=accept, for_first_calls=advice)


def _to_accept(found: Counts) -> str:
    """How to accept these counts, where a marker names others."""
    if not found:
        return _to_write("no_compiles")
    if all(name.isidentifier() and not iskeyword(name) for name in found):
        shown = ", ".join(f"{name}={count}" for name, count in found.items())
    else:
        shown = f"**{dict(found)}"
    return _to_write(f"compiles({shown})")


def _to_write(marker: str, instead_of: str = "") -> str:
    instead = f" instead of {instead_of}" if instead_of else ""
    return f"to accept it, write @pytest.mark.{marker}{instead}"


def _expected_counts(marker: pytest.Mark) -> Counts:
    counts = marker.kwargs
    if marker.args or not counts or not all(map(_is_count, counts.values())):
        _refuse_marker(marker, "takes counts by function, as in compiles(step=2, add=1)")
    return {name: count for name, count in counts.items() if count}


def _limit(marker: pytest.Mark) -> int:
    if marker.kwargs or len(marker.args) != 1 or not _is_count(marker.args[0]):
        _refuse_marker(marker, "takes one count, as in max_compiles(3)")
    return int(marker.args[0])


def _refuse_marker(marker: pytest.Mark, usage: str) -> NoReturn:
    given = [*map(repr, marker.args), *(f"{k}={v!r}" for k, v in marker.kwargs.items())]
    shown = f"({', '.join(given)})"
    pytest.fail(f"@pytest.mark.{marker.name} {usage}; it was given {shown}", pytrace=False)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def check_targets(item: pytest.Item) -> None:
    """Fail a test that compiled what a target's compiler refused."""
    refused = [
        (name, compiled, failure(result.error))
        for compiled in compiles_of(item)
        for name, result in compiled.on.items()
        if result.error is not None
    ]
    if not refused:
        return
    name, first, why = refused[0]
    more = f", and {len(refused) - 1} more" if len(refused) > 1 else ""
    what = f"{first.function} not compiled for {name}{more}: {why}"
    rule = f"{item.name} must compile for all targets, by --compile-fail-on-refusal"
    lines = dict.fromkeys(
        f"{name}: {each.call} at {each.call_site}: {why}" for name, each, why in refused
    )
    programs = [compiled for _, compiled, _ in refused]
    _fail(item, Refused(what, programs), [Heading(rule), *(Note(line, depth=1) for line in lines)])


# --- How a test fails -----------------------------------------------------------------------------


def fail(  # noqa: PLR0913 (keywords, each of its own)
    item: pytest.Item,
    rule: str,
    expected: Counts | None,
    compiles: Sequence[Compile],
    *,
    accept: str = "",
    what: str = "",
    for_first_calls: str = "",
) -> NoReturn:
    """Fail a test, with what it compiled and what it should have; pytest sums up the first line.

    Args:
        item: the test.
        rule: what it was held to.
        expected: how often each function may be compiled; without it, no compile is expected.
        compiles: what was compiled.
        accept: what to do if that is as it should be.
        what: all of it in one line, where that does not follow from what is expected.
        for_first_calls: what to do about a first call. Its own advice is that there is nothing to
            fix, which is no help in a failure.
    """
    parts: list[Part] = [Heading(rule)]
    if expected is not None:
        found = Counter(compiled.function for compiled in _made(compiles))
        rows = [
            (name, Count(expected.get(name, 0)), Count(found[name]))
            for name in dict.fromkeys([*expected, *found])
        ]
        parts.append(Table(words("function") + figures("expected", "found"), rows))
    beyond = _surplus(expected or {}, compiles)
    parts += _reasons(beyond, for_first_calls)
    if accept:
        parts.append(Note(f"→ {accept}"))
    _fail(item, Refused(what or _difference(expected or {}, compiles), beyond), parts)


def _reasons(beyond: Sequence[Compile], for_first_calls: str) -> Iterator[Note]:
    """What was compiled, why, and what to do: what came at one line for one reason, once."""
    groups: dict[tuple[str, CallSite, tuple[str, ...]], list[Compile]] = {}
    for compiled in beyond:
        to_do = [for_first_calls] if is_first(compiled) else advice_of(compiled.causes)
        # An operation outside of jit is compiled by itself: together they are one call of it.
        name = "" if compiled.eager and is_first(compiled) else compiled.function
        key = name, compiled.call_site, tuple(filter(None, to_do))
        groups.setdefault(key, []).append(compiled)
    for (_, call_site, advice), group in groups.items():
        yield Note(f"{title_of(group)} at {call_site}")
        for sentence in _why_all(group):
            yield Note(f"because: {sentence}", depth=1)
        for text in advice:
            yield Note(f"→ {text}", depth=1)


def _why_all(group: Sequence[Compile]) -> list[str]:
    if all(map(is_first, group)) and len({compiled.function for compiled in group}) > 1:
        return ["first call of each"]
    found = sentences_of_many([compiled.causes for compiled in group], coded=True)
    if len(found) <= _MOST_SENTENCES:
        return found
    return [*found[: _MOST_SENTENCES - 1], f"and {len(found) - _MOST_SENTENCES + 1} more"]


def fail_grown(item: pytest.Item, rule: str, what: str, programs: Sequence[Compile]) -> NoReturn:
    """Fail a test whose programs have more operations than they may, with what is unrolled."""
    parts: list[Part] = [Heading(rule)]
    parts += [Note(loop_sentence(each.loops[0]), depth=1) for each in programs if each.loops]
    parts.append(Note("→ --compile-update puts what it has now into the budget", depth=1))
    _fail(item, Refused(what, programs), parts)


def _fail(item: pytest.Item, refused: Refused, below: Sequence[Part]) -> NoReturn:
    item.stash[REFUSED] = refused
    # Its first line stands in pytest's summary, too, and is whole there.
    first = Note(refused.what, is_whole=True)
    pytest.fail(_rendered([first, *below]), pytrace=False)


def _rendered(parts: Sequence[Part]) -> str:
    # Not to what captures a test's output, but where pytest shows it in the end.
    return render(parts, width(), dense=True, stream=sys.__stdout__)


def _made(compiles: Sequence[Compile]) -> list[Compile]:
    return [compiled for compiled in compiles if not compiled.from_disk]


def _surplus(expected: Mapping[str, int], compiles: Sequence[Compile]) -> list[Compile]:
    """What was compiled beyond what is expected."""
    found: Counter[str] = Counter()
    beyond = []
    for compiled in _made(compiles):
        found[compiled.function] += 1
        if found[compiled.function] > expected.get(compiled.function, 0):
            beyond.append(compiled)
    return beyond


def _difference(expected: Mapping[str, int], compiles: Sequence[Compile]) -> str:
    """In one line, which function was compiled how often, what was expected, and why."""
    found = Counter(compiled.function for compiled in _made(compiles))
    beyond = _surplus(expected, compiles)
    return "; ".join(
        f"{name} ×{found[name]}, expected {expected.get(name, 0)}"
        + _why([compiled for compiled in beyond if compiled.function == name])
        for name in dict.fromkeys([*expected, *found])
        if expected.get(name, 0) != found[name]
    )


def _why(beyond: Sequence[Compile]) -> str:
    """The causes of recompiles, if there are some: a first call explains little."""
    again = [compiled for compiled in beyond if not is_first(compiled)] or list(beyond)
    if not again:
        return ""
    if len(again) == 1:
        return f": {in_a_line(again[0].causes)}"
    found = sentences_of_many([compiled.causes for compiled in again], coded=True)
    return f": {'; '.join(found)}"


def _by_function(compiles: Sequence[Compile]) -> list[list[Compile]]:
    groups: dict[str, list[Compile]] = {}
    for compiled in compiles:
        groups.setdefault(compiled.function, []).append(compiled)
    return list(groups.values())


# --- What its report shows ------------------------------------------------------------------------


def report_failure(item: pytest.Item, report: pytest.TestReport) -> None:
    """Show with a failed test what it compiled and why, and annotate its lines on GitHub."""
    log = log_of(item)
    has_fixture = "compiles" in getattr(item, "fixturenames", ())
    if not log.compiles and not has_fixture:
        return
    refused = item.stash.get(REFUSED, None)
    # What a failure of ours has said of causes and remedies is not said again.
    shown = log_table(log.compiles, with_advice=refused is None)
    report.sections.append(("compiles", _rendered(shown)))
    if not github.in_github_actions():
        return
    if refused is None and has_fixture:
        # It was most likely a count that the test itself did not hold.
        again = [compiled for compiled in log.compiles if not is_first(compiled)]
        what = "; ".join(
            f"{title_of(group, with_signature=False)}{_why(group)}" for group in _by_function(again)
        )
        refused = Refused(what, again)
    if refused is not None and refused.beyond:
        github.attach(report, *refused)
