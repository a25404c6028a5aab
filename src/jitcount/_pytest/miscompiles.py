"""What a run of pytest says about wrong programs: those that are known, and with a check, all.

``--compile-check`` computes each program that a test compiles operation by operation too, and fails
the test if that differs. Without it, a run that shows compiles says once which test has compiled a
program that this release of JAX is known to miscompile.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from jitcount._after_jax import after_import_of_jax, forget
from jitcount._miscompiles.known import has_recognisable

if TYPE_CHECKING:
    from collections.abc import Generator

    from jitcount._miscompiles.checking import Checker
    from jitcount._miscompiles.suspects import Suspects

_SENT = "jitcount_suspects"


class Miscompiles:
    """Listens from the tests' import of JAX on, until the run ends; in each worker."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._checks: bool = config.getoption("jitcount_check")
        self._block = contextlib.ExitStack()
        self._checker: Checker | None = None
        self._suspects: Suspects | None = None
        self._lines: dict[str, list[str]] = {}
        """What to say at the end, once for each miscompile: several workers may have found it."""
        self._checked: Counter[str] = Counter()
        """How many programs were compared, and how many were not, by the reason."""
        self._callback = self._begin  # one object: a bound method is a new one each time
        after_import_of_jax(self._callback)

    def _begin(self) -> None:
        from jitcount._registry import registry  # noqa: PLC0415 (here and below: it needs JAX)

        if has_recognisable():
            from jitcount._miscompiles.suspects import Suspects  # noqa: PLC0415

            self._suspects = Suspects()
            self._block.enter_context(registry.listening(self._suspects))
        if self._checks:
            from jitcount._miscompiles.checking import Checker  # noqa: PLC0415

            self._checker = Checker()
            self._block.enter_context(registry.listening(self._checker))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Fail a test that has compiled a program wrongly, in a fixture or in its call.

        One that does not pass anyway, for this reason or another, is told why.
        """
        report = yield
        if self._checker is None:
            return report
        checked, self._checker.programs = self._checker.programs, []
        for program in checked:
            self._checked[program.not_checked] += 1
        if wrong := [program for program in checked if program.wrong]:
            from jitcount._show.check_table import checked_line  # noqa: PLC0415

            lines = "\n".join(f"  {checked_line(program)}" for program in wrong)
            text = f"what {item.name} compiled is wrong:\n{lines}"
            if report.passed:
                report.outcome, report.longrepr = "failed", text
            else:
                report.sections.append(("miscompiles", text))
        return report

    def pytest_sessionfinish(self) -> None:
        """Gather what was found; a worker of pytest-xdist sends it."""
        if self._suspects is not None:
            how = "pytest --compile-check says whether it is wrong"
            if self._checks:
                how = "a test that it makes wrong fails"
            self._lines = self._suspects.lines(lambda _: how)
        sent = getattr(self._config, "workeroutput", None)
        if sent is not None:
            sent[_SENT] = self._lines, dict(self._checked)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a worker has sent; one that crashed has sent nothing."""
        lines, checked = (getattr(node, "workeroutput", None) or {}).get(_SENT, ({}, {}))
        for warning, programs in lines.items():
            known = self._lines.setdefault(warning, [])
            known += [program for program in programs if program not in known]
        self._checked.update(checked)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say which programs this release is known to miscompile, and what was compared."""
        if not self._lines and not self._checks:
            return
        terminalreporter.section("miscompiles")
        for warning, programs in self._lines.items():
            terminalreporter.write_line(warning)
            for program in programs:
                terminalreporter.write_line(f"  {program}")
        if self._checks:
            from jitcount._show.text import plural  # noqa: PLC0415 (few runs show anything)

            compared = plural(self._checked.pop("", 0), "program")
            terminalreporter.write_line(f"{compared} compared with operations one by one")
            for reason, count in self._checked.most_common():
                terminalreporter.write_line(f"  {count} not compared: {reason}")

    def pytest_unconfigure(self) -> None:
        """Leave JAX as it was."""
        forget(self._callback)
        self._block.close()
