"""The fixture `same`: what a test returns must be the same on every backend, and as committed.

A function's results are held to the tolerance that is derived for them, here and at once. They, and
plain values, are also held to the references that the project has committed, if it has; and they
are kept in the ledger of the run, for a comparison with that of another machine.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import jax
import msgspec
import pytest

from jitcount._ledger.comparison import some
from jitcount._ledger.files import decode, encode
from jitcount._ledger.findings import remarks
from jitcount._ledger.ledger import CaseEntry, Result
from jitcount._ledger.references import OfTest
from jitcount._numerics.arrays import encode as encode_array
from jitcount._numerics.expected import BETWEEN_RUNS, Expected, between_runs
from jitcount._numerics.judging import judge, judge_committed
from jitcount._show.text import plural
from jitcount._suite.own_cases import is_share, name_of
from jitcount._suite.returned import (
    derived_tolerance,
    expected_of,
    named_arrays,
    require_not_donated,
)
from jitcount._text import one_line
from jitcount._tolerance.assertions import hints_at
from jitcount._tolerance.tracing import NotTraceableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jitcount._pytest.same_run import SameRun

_OF_A_VALUE = "it was given as a value, not as a function"

_MOST_LINES = 10


class Sent(msgspec.Struct, frozen=True):
    """What a test's calls of `same` found; from another process it comes with the report."""

    results: tuple[Result, ...] = ()
    """For the ledger."""

    returned: OfTest = {}
    """For the references."""

    remarks: tuple[str, ...] = ()
    """What was not judged, or by a declared bound only, and why."""

    without_reference: int = 0
    """How many results were judged by nothing."""


class Same:
    """The fixture: ``same(f, *args)`` or ``same(value)``; returns the result."""

    def __init__(self, test: str, run: SameRun) -> None:
        self._file = run.name
        self._committed = run.references(test)
        self._results: list[Result] = []
        self._returned: OfTest = {}
        self._without_reference = 0

    def __call__(
        self,
        what: Any,
        /,
        *args: Any,
        within: float | None = None,
        products: str = "float32",
        name: str = "",
        **kwargs: Any,
    ) -> Any:
        """Judge and keep what a function returns, or a value.

        Args:
            what: a function that returns arrays in any pytree, or such a pytree.
            args: what the function is called with.
            within: where nothing can be derived: how far apart two runs may be, as a share of the
                largest magnitude in each array. By default 1e-5, or one step of a 16-bit float.
            products: at which precision matrix products are computed, as for `jitcount.tolerance`.
            name: what the call is called in files and messages; by default as the function.
            kwargs: what the function is called with by name.

        Returns:
            What the function returns, or the value.
        """
        __tracebackhide__ = True
        if within is not None and not is_share(within):
            raise ValueError(f"within must be 0 or a positive number, as 1e-5; it is {within!r}")
        is_call = bool(args or kwargs) or _is_function(what)
        result = what(*args, **kwargs) if is_call else what
        for given in (args, kwargs):
            require_not_donated(given)
        arrays = named_arrays(result)
        label = self._label(name or (name_of(what) if is_call else "value"))
        if not arrays:
            raise ValueError(f"same has nothing to judge: {label} has no array")
        try:
            if not is_call:
                raise NotTraceableError(_OF_A_VALUE)  # noqa: TRY301
            derived = derived_tolerance(what, args, kwargs, products)
            expected = expected_of(derived)
        except NotTraceableError as error:
            why, derived = one_line(error.why), None
            expected = [between_runs(value, within, why) for value in arrays.values()]
        here = dict(zip(arrays, expected, strict=True))
        self._returned[label] = here
        found = {path: encode_array(value) for path, value in arrays.items()}
        self._results += [Result(found[path], here[path], f"{label}{path}") for path in found]
        committed = self._committed.get(label)
        wrong = [
            f"{label}{path}: {verdict}"
            for path, value in found.items()
            if not (verdict := judge(value, here[path])).holds
        ]
        if committed is None:
            self._without_reference += sum(e.numerics == BETWEEN_RUNS for e in expected)
        else:
            wrong += self._unlike(label, found, here, committed)
        if wrong:
            hints = [] if derived is None else hints_at(list(arrays.values()), derived)
            pytest.fail("\n".join([*wrong, *hints]), pytrace=False)
        return result

    def _label(self, name: str) -> str:
        """What a call is called; the second of a name is ``step (2)``."""
        number = 1
        label = name
        while label in self._returned:
            number += 1
            label = f"{name} ({number})"
        return label

    def _unlike(
        self,
        label: str,
        found: Mapping[str, Any],
        here: Mapping[str, Expected],
        committed: Mapping[str, Expected],
    ) -> Iterator[str]:
        """How results differ from their committed references, a line each."""
        accept = f"the reference is in {self._file}: --same-update replaces it"
        if list(found) != list(committed):
            shown = [", ".join(path or "one array" for path in each) for each in (found, committed)]
            yield f"{label} returns {shown[0]}, not {shown[1]}; {accept}"
            return
        for path, value in found.items():
            verdict = judge_committed(value, here[path], committed[path])
            if not verdict.holds:
                yield f"{label}{path}: {verdict}; {accept}"

    def sent(self) -> Sent:
        """What was found so far."""
        return Sent(
            results=tuple(self._results),
            returned=self._returned,
            remarks=tuple(remarks(CaseEntry(results=tuple(self._results)))),
            without_reference=self._without_reference,
        )

    @contextlib.contextmanager
    def called_again(self) -> Iterator[None]:
        """Let the test be called once more, from its beginning; what it finds then is not kept."""
        kept = self._results, self._returned, self._without_reference
        self._results, self._returned = [], {}
        try:
            yield
        finally:
            self._results, self._returned, self._without_reference = kept


def _is_function(what: object) -> bool:
    """Whether something is a function, and no pytree of arrays that can be called, as models are.

    >>> _is_function(len), _is_function(3), _is_function(jax.tree_util.Partial(len))
    (True, False, False)
    """
    return callable(what) and jax.tree_util.all_leaves([what])


# --- What a report carries ------------------------------------------------------------------------


def attach(same: Same, report: pytest.TestReport) -> None:
    """Let a test's report carry what `same` found, also from another process."""
    report.jitcount_same = encode(same.sent()).decode()  # type: ignore[attr-defined]


def returned_in(sent: str) -> OfTest:
    """What a report carries for the references."""
    return decode(sent.encode(), Sent).returned if sent else {}


def results_in(sent: str) -> tuple[Result, ...]:
    """The results in what a report carries, for a ledger."""
    return decode(sent.encode(), Sent).results if sent else ()


def summary(config: pytest.Config, reports: Sequence[pytest.TestReport]) -> list[str]:
    """What of the results was judged by nothing, or by a declared bound only, and why."""
    tests: dict[str, list[str]] = {}
    unjudged: list[int] = []
    for report in reports:
        sent = decode(report.jitcount_same.encode(), Sent)
        for remark in sent.remarks:
            tests.setdefault(remark, []).append(report.nodeid)
        unjudged += [sent.without_reference] if sent.without_reference else []
    lines = [f"{some(of_it)}: {remark}" for remark, of_it in tests.items()]
    more = len(lines) - _MOST_LINES
    lines = [*lines[:_MOST_LINES], *([f"and {more} more"] if more > 0 else [])]
    if unjudged and not config.getoption("jitcount_same_update"):
        what = f"{plural(sum(unjudged), 'result')} of {plural(len(unjudged), 'test')}"
        remedy = f"--same-update writes references to {config.getini('same_file')}"
        lines.append(f"judged by nothing, since there is no reference: {what}; {remedy}")
    return lines
