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

from jitcount._explain.causes.arrays import Dtype
from jitcount._explain.causes.cause import Kind, in_a_list
from jitcount._explain.fix import Fix
from jitcount._explain.outside_jit import host_library_of
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

# So many values of an argument that chooses what is computed are as they should be.
_FEW = 4


def recompiles(compiles: Sequence[Compile]) -> list[Fix]:
    """A fix for each change that recompiles one of the user's functions at one of its lines.

    What was compiled ahead of time was meant to be compiled, and is no recompile.
    """
    groups: dict[tuple[str, str], list[Compile]] = {}
    for compiled in compiles:
        if not compiled.eager:
            groups.setdefault((compiled.function, compiled.call_site), []).append(compiled)
    found: list[Fix] = []
    functions: set[str] = set()
    for (function, _), group in groups.items():
        found += _fixes(group, is_compiled_elsewhere=function in functions)
        functions.add(function)
    return found


def _fixes(group: Sequence[Compile], *, is_compiled_elsewhere: bool) -> list[Fix]:
    every = [_events(compiled) for compiled in group]
    if is_compiled_elsewhere and any(e.causes[0].kind in _ON_PURPOSE for e in every[0]):
        every[0] = []
    states = _states(group, every)
    found: list[Fix] = []
    prevented: set[_Change] = set()
    together: list[_Change] = []  # changes that save nothing alone
    meant = _meant(every)
    often = Counter(e.change for one in every for e in one if e.advice and e.change not in meant)
    waiting = _by_advice(every, [change for change, _ in often.most_common(_MOST_CHANGES)])
    left = _kept(group, states, prevented)
    while waiting:
        kept = {
            advice: _kept(group, states, prevented.union(waiting[advice])) for advice in waiting
        }
        best = min(waiting, key=lambda advice: _seconds(group, kept[advice]))
        prevented.update(waiting[best])
        together += waiting.pop(best)
        gone = [group[n] for n in left if n not in set(kept[best])]
        if gone:
            found.append(_fix(gone, every, together))
            left, together = kept[best], []
    return found


# What differs where one line calls a function with something else than another line on purpose:
# with test data, or with another model. What it compiles first is no recompile.
_ON_PURPOSE = {
    Kind.SHAPE,
    Kind.STATIC_ARGUMENT,
    Kind.PYTREE,
    Kind.NEW_FUNCTION,
    Kind.TRANSFORM,
}


def _meant(every: Sequence[Sequence[_Event]]) -> set[_Change]:
    """The changes that choose among a few programs, each of which is wanted."""
    values: dict[_Change, set[object]] = {}
    unwanted = set()
    for event in itertools.chain.from_iterable(every):
        values.setdefault(event.change, set()).update((event.before, event.after))
        if not all(cause.is_fine_if_few for cause in event.causes):
            unwanted.add(event.change)
    return {change for change, taken in values.items() if len(taken) <= _FEW} - unwanted


def _by_advice(
    every: Sequence[Sequence[_Event]], changes: Sequence[_Change]
) -> dict[str, list[_Change]]:
    """The changes that each advice prevents; what is said most often of a change is its advice."""
    found: dict[str, list[_Change]] = {}
    for change in changes:
        found.setdefault(_advice(every, change), []).append(change)
    return found


def _advice(every: Sequence[Sequence[_Event]], change: _Change) -> str:
    happened = [e for one in every for e in one if e.change == change]
    dtypes = [cause for e in happened for cause in e.causes if isinstance(cause, Dtype)]
    if dtypes:
        among = (cause.among(dtypes) for cause in happened[0].causes if isinstance(cause, Dtype))
        return advice_of(among)[0]
    return Counter(e.advice for e in happened).most_common(1)[0][0]


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
    kind = causes[0][0].kind
    return Fix(
        code=kind.code,
        title=kind.in_words,
        what=gone[0].function,
        call_site=gone[0].call_site,
        count=len(gone),
        seconds=sum(compiled.total_s for compiled in gone),
        is_at_most=False,
        changes=(*sentences_of_many(causes, counted=False), *_in_a_library(gone)),
        advices=tuple(dict.fromkeys(_advice(happened, change) for change in changes)),
        compiles=tuple(gone),
    )


def _in_a_library(compiles: Sequence[Compile]) -> list[str]:
    """Where a library calls the function, if the user's line does not."""
    lines = dict.fromkeys(compiled.via for compiled in compiles)
    if not all(lines) or any(map(host_library_of, lines)):
        return []
    return [f"a library calls it at {in_a_list([*lines])}"]
