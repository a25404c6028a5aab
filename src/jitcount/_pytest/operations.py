"""The operations of a test's programs, held against the budget: ``compile_budget_operations``.

They are the same in every run of one release of JAX on one platform. A program that has more than
the budget says has grown: its line is known, because tests that are held to it are profiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from jitcount._ledger.budget import Operations, Sizes, change_text, largest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pytest

    from jitcount._explain.compile import Compile
    from jitcount._ledger.budget import Budget


class Found(msgspec.Struct, frozen=True):
    """The operations of one test's programs; travels with its report."""

    platform: str = ""
    operations: Operations = {}


class Held:
    """What a run finds, and holds against its budget, where a project asks for it."""

    def __init__(self, config: pytest.Config, budget: Budget | None, name: str) -> None:
        self._is_asked = bool(config.getini("compile_budget_operations"))
        self._with_eager = bool(config.getini("compile_budget_eager"))
        self._budget = budget
        self._name = name
        self.found: dict[str, Found] = {}
        """By test."""

    @property
    def are_held(self) -> bool:
        """Whether there is something that they are held against."""
        return self._is_asked and self._budget is not None and self._budget.sizes is not None

    def of(self, compiles: Iterable[Compile]) -> Found:
        """Those of a test: of the platform that it compiled for first."""
        if not self._is_asked:
            return Found()
        found = list(largest(compiles, with_eager=self._with_eager).values())
        platform = found[0].platform if found else ""
        mine = {each.function: each.operations for each in found if each.platform == platform}
        return Found(platform, mine)

    def check(self, item: pytest.Item, compiles: Sequence[Compile]) -> None:
        """Fail a test that compiles a larger program than its budget has."""
        found = self.of(compiles)
        sizes = self._sizes_for(found)
        changes = sizes.grown(item.nodeid, found.operations) if sizes is not None else {}
        if not changes:
            return
        from jitcount._pytest.failing import fail_grown  # noqa: PLC0415 (it is there: a test is held)

        every = largest(compiles, with_eager=self._with_eager)
        programs = [every[name] for name in changes]
        what = "; ".join(
            f"{change_text(each.function, *changes[each.function])}, at {most_at(each)}"
            for each in programs
        )
        rule = f"{item.name} compiles a larger program than {self._name} has of it"
        fail_grown(item, rule, what, programs)

    def sizes(self, passed: Iterable[str]) -> Sizes | None:
        """What the tests that passed have, for a budget: of one platform."""
        if not self._is_asked:
            return None
        found = {test: self.found[test] for test in passed}
        platform = next((each.platform for each in found.values() if each.platform), "")
        mine = {test: each.operations for test, each in found.items() if each.platform == platform}
        return Sizes(platform=platform, tests=mine)

    def lines(self, passed: Iterable[str]) -> list[str]:
        """What has fewer operations than the budget says, and why some are not held."""
        if not self._is_asked or self._budget is None:
            return []
        lines: list[str] = []
        reasons: dict[str, int] = {}
        for test in passed:
            found = self.found[test]
            if (sizes := self._sizes_for(found)) is not None:
                lines += _smaller(sizes, test, found.operations)
            elif found.platform:
                reason = _reason(self._budget, found.platform)
                reasons[reason] = reasons.get(reason, 0) + 1
        lines += ["--compile-update puts them into the budget"] if lines else []
        from jitcount._show.text import plural  # noqa: PLC0415 (the same)

        return [*lines, *(f"{plural(count, 'test')}: {why}" for why, count in reasons.items())]

    def _sizes_for(self, found: Found) -> Sizes | None:
        """Those of the budget, where they can be held against what was found."""
        if self._budget is None or not found.platform or _reason(self._budget, found.platform):
            return None
        return self._budget.sizes


def _reason(budget: Budget, platform: str) -> str:
    """Why what was found cannot be held against a budget; empty where it can."""
    if budget.sizes is None:
        return "the budget has no operations yet: --compile-update puts them there"
    import jax  # noqa: PLC0415 (a test has compiled: it is there)

    of, here = (budget.jax, budget.sizes.platform), (jax.__version__, platform)
    where = "they are of JAX {} on {}, and this is {} on {}".format(*of, *here)
    return "" if of == here else f"operations are not held: {where}"


def _smaller(sizes: Sizes, test: str, found: Mapping[str, int]) -> list[str]:
    shrunk = sizes.shrunk(test, found).items()
    new = found.keys() - sizes.tests.get(test, {}).keys()
    return [
        *(f"{test}: {change_text(name, *change)}" for name, change in shrunk),
        *(f"{test}: {name} is not in the budget" for name in sorted(new)),
    ]


def most_at(compiled: Compile) -> str:
    """The line that most of its operations come from; without a profile, that of the call."""
    lines = [line for line in compiled.lines if line.is_attributed and line.operations]
    most = max(lines, key=lambda line: line.operations, default=None)
    return str(compiled.call_site if most is None else most.call_site)
