"""What recompiles a jitted function, and how many compiles go when each change is prevented.

Changes multiply: twenty lengths and two learning rates are up to forty programs. So what a fix
saves is counted after those before it: with one length for all, only the learning rates are left.
"""

from __future__ import annotations

import itertools
import operator
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from jitcount._explain.fix import Fix
from jitcount._explain.summary import advice_of, events, is_first, one_axis, sentences_of_many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._explain.causes import Cause
    from jitcount._explain.compile import Compile

# What can change from compile to compile: the type of its causes, the places, perhaps an axis.
_Change: TypeAlias = tuple[object, ...]

# What a compile has where others have something else; what is not in it is as at the beginning.
_State: TypeAlias = dict[_Change, object]


class _Event(NamedTuple):
    """One thing that was not as in the nearest earlier program."""

    change: _Change
    before: object
    after: object
    causes: tuple[Cause, ...]
    """One for each place at which it happened."""

    @property
    def advice(self) -> str:
        """What to do about it; empty where there is nothing to do."""
        return next(iter(advice_of(self.causes)), "")


# Of more changes than these, the most frequent are looked at.
_MOST_CHANGES = 40


def recompiles(compiles: Sequence[Compile]) -> list[Fix]:
    """A fix for each change that recompiles one of the user's functions at one of its lines.

    What was compiled ahead of time was meant to be compiled, and is no recompile.
    """
    groups: dict[tuple[str, str], list[Compile]] = {}
    for compiled in compiles:
        if not compiled.eager:
            groups.setdefault((compiled.function, compiled.call_site), []).append(compiled)
    return [fix for group in groups.values() for fix in _fixes(group)]


def _fixes(group: Sequence[Compile]) -> list[Fix]:
    every = [_events(compiled) for compiled in group]
    states = _states(group, every)
    found: list[Fix] = []
    prevented: set[_Change] = set()
    together: list[_Change] = []  # changes that save nothing alone
    often = Counter(event.change for one in every for event in one if event.advice)
    waiting = [change for change, _ in often.most_common(_MOST_CHANGES)]
    left = _kept(group, states, prevented)
    while waiting:
        kept = {change: _kept(group, states, {*prevented, change}) for change in waiting}
        best = min(waiting, key=lambda change: _seconds(group, kept[change]))
        waiting.remove(best)
        prevented.add(best)
        together.append(best)
        gone = [group[n] for n in left if n not in set(kept[best])]
        if gone:
            found.append(_fix(gone, every, together))
            left, together = kept[best], []
    return found


def _events(compiled: Compile) -> list[_Event]:
    if is_first(compiled) or compiled.ahead_of_time:
        return []
    return [_event(cause, places) for cause, places in events(compiled.causes)]


def _event(cause: Cause, places: tuple[str, ...]) -> _Event:
    causes = tuple(msgspec.structs.replace(cause, where=place) for place in places)
    if (axis := one_axis(cause)) is not None:
        number, before, after = axis
        return _Event((type(cause), places, number), before, after, causes)
    # Two objects that look the same are none the less two.
    after = cause.after if cause.after != cause.before else object()
    return _Event((type(cause), places), cause.before, after, causes)


def _states(group: Sequence[Compile], every: Sequence[Sequence[_Event]]) -> list[_State]:
    """What each compile has, from what differed from the nearest compile before it."""
    initial: _State = {}
    for event in itertools.chain.from_iterable(every):
        initial.setdefault(event.change, event.before)
    states: list[_State] = []
    for number, one in enumerate(every):
        before = [
            (group[earlier].signature, states[earlier])
            for earlier in reversed(range(number))
            if all(states[earlier].get(e.change, initial[e.change]) == e.before for e in one)
        ]
        changed = {event.change: event.after for event in one}
        found = [
            (signature, {c: v for c, v in (state | changed).items() if v != initial[c]})
            for signature, state in before or [((), {})]
        ]
        if one and len(found) > 1:
            found = [_likeliest(found, group[number].signature, states)]
        states.append(found[0][1] if one else {})
    return states


def _likeliest(
    found: Sequence[tuple[tuple[str, ...], _State]],
    signature: tuple[str, ...],
    before: Sequence[_State],
) -> tuple[tuple[str, ...], _State]:
    """Which of several states a compile has, each with the signature of the compile before it.

    No program is compiled twice, and an array that is not said to have changed has not. Of those
    that are as likely it is the first.
    """
    return min(
        found,
        key=lambda one: (one[1] in before, sum(map(operator.ne, one[0], signature))),
    )


def _kept(group: Sequence[Compile], states: Sequence[_State], prevented: set[_Change]) -> list[int]:
    """The compiles that are left, by number, when some changes do not happen any more."""
    # By what it has, whether something was prevented in one that has it: then a later one need not
    # be compiled. Without that it was compiled twice, and not for what it has.
    seen: dict[frozenset[tuple[_Change, object]], bool] = {frozenset(): False}
    left = []
    for number, (compiled, state) in enumerate(zip(group, states, strict=True)):
        key = frozenset((c, value) for c, value in state.items() if c not in prevented)
        is_changed = len(key) < len(state)
        is_gone = key in seen and (is_changed or (seen[key] and bool(state)))
        if not is_gone or compiled.ahead_of_time:
            left.append(number)
        seen[key] = seen.get(key, False) or is_changed
    return left


def _seconds(group: Sequence[Compile], numbers: Sequence[int]) -> float:
    return sum(group[number].total_s for number in numbers)


def _fix(
    gone: Sequence[Compile], every: Sequence[Sequence[_Event]], changes: Sequence[_Change]
) -> Fix:
    happened = [[event for event in one if event.change in changes] for one in every]
    causes = [[cause for event in one for cause in event.causes] for one in happened if one]
    advices = []
    for change in changes:
        said = Counter(e.advice for one in happened for e in one if e.change == change)
        advices.append(said.most_common(1)[0][0])
    kind = causes[0][0].kind
    return Fix(
        code=kind.code,
        title=kind.in_words,
        what=gone[0].function,
        call_site=gone[0].call_site,
        count=len(gone),
        seconds=sum(compiled.total_s for compiled in gone),
        is_at_most=False,
        changes=tuple(sentences_of_many(causes, counted=False)),
        advices=tuple(dict.fromkeys(advices)),
        compiles=tuple(gone),
    )
