"""What changed between the programs of two runs, function by function, at their lines.

For ledgers that kept no results: of ``jitcount run``, of pytest, of `CompileLog.save`. Counts,
operations and refusals are the same in every run of the same code; seconds are not, and are not
compared here.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from jitcount._explain.summary import is_first, sentences_of_many
from jitcount._ledger.comparison import OUTSIDE_JIT, Change, ChangeKind, Growth, Totals
from jitcount._ledger.sites import (
    Site,
    file_of,
    programs_in_pairs,
    side_by_side,
    sites_of,
    surplus,
)
from jitcount._targets.result import refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from jitcount._explain.causes import Cause
    from jitcount._explain.compile import Compile
    from jitcount._ledger.ledger import CaseEntry, Ledger
    from jitcount._observe.call_site import CallSite
    from jitcount._targets.result import OnTarget

    Programs = Sequence[tuple[Compile, Compile]]

# Less than this share more memory is a rounding of the compiler's.
_SAME_MEMORY = 0.01

_MOST_ARGUMENTS = 3
_MOST_NAMES = 6


def has_results(ledger: Ledger) -> bool:
    """Whether a ledger has something beside programs: it is one of the suite's."""
    return any(map(_has_results, ledger.cases.values()))


def _has_results(entry: CaseEntry) -> bool:
    return bool(
        entry.results
        or entry.expected_compiles is not None
        or entry.unsupported
        or entry.error
        or entry.known_wrong
        or entry.figures
    )


def totals(ledger: Ledger) -> Totals:
    """How many programs a ledger has, and their seconds."""
    hits = sum(compiled.from_disk for compiled in ledger.compiles)
    seconds = math.fsum(compiled.total_s for compiled in ledger.compiles)
    return Totals(len(ledger.compiles) - hits, hits, seconds)


def changes(ledgers: Mapping[str, Ledger]) -> tuple[list[Change], list[str]]:
    """What changed from each ledger to the next, and what was not compared."""
    found: list[Change] = []
    notes: list[str] = []
    for (name, before), (other_name, after) in itertools.pairwise(ledgers.items()):
        compared = _Two(name, before, other_name, after)
        found += compared.changes()
        notes += compared.notes
    return found, notes


class _Two:
    """Two ledgers, the earlier and the later one."""

    def __init__(self, name: str, before: Ledger, other_name: str, after: Ledger) -> None:
        self._before, self._after = before, after
        self._ledger = other_name
        one, other = before.environment, after.environment
        self.notes: list[str] = []
        self._has_same_operations = (one.kind, one.jax) == (other.kind, other.jax)
        if not self._has_same_operations:
            where = [f"jax {each.jax} on {each.platform}" for each in (one, other)]
            both = f"{name} is of {where[0]}, {other_name} of {where[1]}"
            self.notes.append(f"operations are not compared: {both}, which lower to other ones")
        asked = [
            {target for compiled in ledger.compiles for target in compiled.on}
            for ledger in (before, after)
        ]
        self._targets = sorted(asked[0] & asked[1])
        for target in sorted(asked[0] ^ asked[1]):
            has = name if target in asked[0] else other_name
            self.notes.append(f"{target} is not compared: {has} alone was compiled for it")

    def changes(self) -> list[Change]:
        """All that changed: of jitted functions first, by kind, the largest change first."""
        if self._before.environment.has_jit != self._after.environment.has_jit:
            self.notes = [f"{self._ledger} is not compared: one of the two is without jit"]
            return []
        found: list[Change] = []
        gone: list[tuple[str, Site]] = []
        appeared: list[tuple[str, Site]] = []
        for case, one, other in self._cases():
            pairs, alone, new = side_by_side(sites_of(one), sites_of(other))
            for before, after in pairs:
                found += self._of_site(case, before, after)
            gone += [(case, site) for site in alone]
            appeared += [(case, site) for site in new]
        found += self._elsewhere(gone, appeared)
        for kind, sites in ((ChangeKind.APPEARED, appeared), (ChangeKind.GONE, gone)):
            found += [self._of_one(kind, case, site) for case, site in sites]
        for case, site in appeared:
            found += self._refusals(case, Site(site.function, site.call_site), site, [])
        order = list(ChangeKind)
        return sorted(
            found,
            key=lambda each: (each.function == OUTSIDE_JIT, order.index(each.kind), -_extent(each)),
        )

    def _cases(self) -> Iterator[tuple[str, Sequence[Compile], Sequence[Compile]]]:
        """The cases of both; a run has one, whatever its script was called."""
        before, after = self._before.cases, self._after.cases
        if len(before) == len(after) == 1:
            ((name, entry),) = after.items()
            (earlier,) = before.values()
            yield name, earlier.compiles, entry.compiles
            return
        for name in dict.fromkeys([*before, *after]):
            entries = before.get(name), after.get(name)
            one, other = (() if entry is None else entry.compiles for entry in entries)
            yield name, one, other

    def _change(self, kind: ChangeKind, case: str, site: Site) -> Change:
        return Change(
            kind=kind,
            case=case,
            ledger=self._ledger,
            function=site.function or OUTSIDE_JIT,
            call_site=str(site.call_site),
        )

    def _of_one(self, kind: ChangeKind, case: str, site: Site) -> Change:
        count = len(site.compiles)
        before, after = (0, count) if kind is ChangeKind.APPEARED else (count, 0)
        why = () if site.function else (_names(site.compiles),)
        return replace(self._change(kind, case, site), before=before, after=after, why=why)

    def _of_site(self, case: str, before: Site, after: Site) -> Iterator[Change]:
        pairs = programs_in_pairs(before, after)
        counts = len(before.compiles), len(after.compiles)
        found = [*self._operations(case, after, pairs), *self._memory(case, after, pairs)]
        if counts[0] != counts[1]:
            yield self._count(case, before, after)
        elif _operations_outside(before) != _operations_outside(after):
            # As many, and others.
            yield self._other_operations(case, before, after)
        else:
            yield from self._served(case, before, after)
            yield from self._causes(case, before, after)
            if not any(change.kind is ChangeKind.OPERATIONS for change in found):
                yield from self._arguments(case, after, pairs)
        yield from found
        yield from self._refusals(case, before, after, pairs)

    # --- One kind each ----------------------------------------------------------------------------

    def _count(self, case: str, before: Site, after: Site) -> Change:
        has_more = len(after.compiles) > len(before.compiles)
        beyond = surplus(before, after) if has_more else surplus(after, before)
        if after.function:
            again = [compiled.causes for compiled in beyond if not is_first(compiled)]
            why = sentences_of_many(again) if again else []
        else:
            why = [_names(beyond)]
        counts = len(before.compiles), len(after.compiles)
        change = self._change(ChangeKind.COMPILES, case, after)
        return replace(change, before=counts[0], after=counts[1], why=tuple(why))

    def _other_operations(self, case: str, before: Site, after: Site) -> Change:
        change = self._change(ChangeKind.COMPILES, case, after)
        count = len(after.compiles)
        why = f"{_names(before.compiles)} → {_names(after.compiles)}"
        return replace(change, before=count, after=count, why=(why,))

    def _served(self, case: str, before: Site, after: Site) -> Iterator[Change]:
        hits = [sum(each.from_disk for each in site.compiles) for site in (before, after)]
        if hits[0] != hits[1]:
            change = self._change(ChangeKind.CACHE, case, after)
            yield replace(change, before=hits[0], after=hits[1])

    def _causes(self, case: str, before: Site, after: Site) -> Iterator[Change]:
        """Recompiles of a kind, at an argument, that there were none of before."""
        were = {_reason(cause) for compiled in before.compiles for cause in compiled.causes}
        causes = [
            compiled.causes
            for compiled in (after.compiles if after.function else ())
            if not is_first(compiled) and {_reason(cause) for cause in compiled.causes} - were
        ]
        if causes:
            change = self._change(ChangeKind.CAUSES, case, after)
            yield replace(change, why=tuple(sentences_of_many(causes)))

    def _arguments(self, case: str, after: Site, pairs: Programs) -> Iterator[Change]:
        other = [(one, two) for one, two in pairs if one.signature != two.signature]
        if other and after.function:
            change = self._change(ChangeKind.ARGUMENTS, case, after)
            yield replace(change, others=len(other) - 1, why=(_other_arguments(*other[0]),))

    def _operations(self, case: str, after: Site, pairs: Programs) -> Iterator[Change]:
        if not self._has_same_operations:
            return
        grown = [
            (one, two) for one, two in pairs if one.operations and one.operations != two.operations
        ]
        if grown:
            one, two = max(grown, key=lambda pair: abs(pair[1].operations - pair[0].operations))
            yield replace(
                self._change(ChangeKind.OPERATIONS, case, after),
                call_site=grown_line(one, two),
                before=one.operations,
                after=two.operations,
                has_profile=bool(one.lines and two.lines),
                others=len(grown) - 1,
            )

    def _memory(self, case: str, after: Site, pairs: Programs) -> Iterator[Change]:
        for target in self._targets if after.function else ():
            sizes = [
                (one.on[target].memory_bytes or 0, two.on[target].memory_bytes or 0)
                for one, two in pairs
                if target in one.on and target in two.on
            ]
            other = [pair for pair in sizes if all(pair) and _is_other_size(*pair)]
            if other:
                before, now = max(other, key=lambda pair: abs(pair[1] - pair[0]))
                yield replace(
                    self._change(ChangeKind.MEMORY, case, after),
                    before=before,
                    after=now,
                    target=target,
                    others=len(other) - 1,
                )

    def _refusals(self, case: str, before: Site, after: Site, pairs: Programs) -> Iterator[Change]:
        for target in self._targets:
            were, are = (_refused(site.compiles, target) for site in (before, after))
            if len(were) == len(are):
                continue
            # The text of one that was not refused before, where there is such a pair.
            known = {
                id(two.on[target])
                for one, two in pairs
                if target in one.on and target in two.on and one.on[target].error is not None
            }
            new = [result for result in are if id(result) not in known] or are
            why = (refusal(str(new[0].error)),) if len(are) > len(were) else ()
            yield replace(
                self._change(ChangeKind.REFUSAL, case, after),
                before=len(were),
                after=len(are),
                target=target,
                why=why,
            )

    def _elsewhere(
        self, gone: list[tuple[str, Site]], appeared: list[tuple[str, Site]]
    ) -> Iterator[Change]:
        """Programs that another test compiles than before; they are taken out of both lists."""
        places: dict[object, list[tuple[str, Site]]] = defaultdict(list)
        for case, site in gone:
            places[_key(site)].append((case, site))
        for case, site in list(appeared):
            if earlier := places[_key(site)]:
                gone.remove(earlier.pop(0))
                appeared.remove((case, site))
                change = self._change(ChangeKind.ELSEWHERE, case, site)
                yield replace(change, after=len(site.compiles))


def _key(site: Site) -> object:
    return site.function, file_of(site.call_site), site.content


def _extent(change: Change) -> int:
    return abs(change.after - change.before)


def _reason(cause: Cause) -> tuple[str, str]:
    return cause.kind, cause.where


def _names(compiles: Iterable[Compile]) -> str:
    counts = Counter(compiled.function for compiled in compiles)
    names = [name if count == 1 else f"{name} ×{count}" for name, count in counts.items()]
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _operations_outside(site: Site) -> Counter[str]:
    """Operations outside of jit by their names; nothing of a jitted function."""
    return Counter(() if site.function else (compiled.function for compiled in site.compiles))


def _is_other_size(before: int, after: int) -> bool:
    return abs(after - before) > _SAME_MEMORY * before


def _refused(compiles: Iterable[Compile], target: str) -> list[OnTarget]:
    results = (compiled.on.get(target) for compiled in compiles)
    return [result for result in results if result is not None and result.error is not None]


def _other_arguments(before: Compile, after: Compile) -> str:
    if len(before.signature) != len(after.signature):
        return f"{len(before.signature)} → {len(after.signature)} arrays"
    pairs = zip(before.signature, after.signature, strict=True)
    other = [f"{one} → {two}" for one, two in pairs if one != two]
    more = len(other) - _MOST_ARGUMENTS
    return ", ".join(other[:_MOST_ARGUMENTS]) + (f" and {more} more" if more > 0 else "")


# --- Where a program has grown --------------------------------------------------------------------


def grown_line(before: Compile, after: Compile) -> str:
    """The line that most of what a program has more, or less, comes from.

    Of programs without a profile, the line of the call. Lines may have moved, so a function is
    found first, then a line in it.
    """
    if not (before.lines and after.lines):
        return str(after.call_site)
    by_function = _operations_by_line(after)
    earlier = _operations_by_line(before)
    more = {
        key: abs(sum(lines.values()) - sum(earlier.get(key, {}).values()))
        for key, lines in by_function.items()
    }
    if not more:
        return str(after.call_site)
    key = max(more, key=lambda each: more[each])
    known = Counter({site.line: count for site, count in earlier.get(key, {}).items()})
    return str(
        max(by_function[key].items(), key=lambda pair: abs(pair[1] - known[pair[0].line]))[0]
    )


def _operations_by_line(compiled: Compile) -> dict[tuple[str, str], Counter[CallSite]]:
    found: dict[tuple[str, str], Counter[CallSite]] = defaultdict(Counter)
    for line in compiled.lines:
        if line.is_attributed:
            found[file_of(line.call_site), line.function][line.call_site] += line.operations
    return found


def growths(changed: Iterable[Change]) -> list[Growth]:
    """The changes in operations, as ledgers with results have them."""
    return [
        Growth(each.case, each.function, each.ledger, each.before, each.after, each.call_site)
        for each in changed
        if each.kind is ChangeKind.OPERATIONS
    ]
