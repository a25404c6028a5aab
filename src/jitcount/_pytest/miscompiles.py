"""What a run of pytest says about wrong programs: those that are known, and with a check, all.

``--compile-check`` computes each program that a test compiles operation by operation too, and fails
the test if that differs. Without it, a run that shows compiles says once which test has compiled a
program that this release of JAX is known to miscompile.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from jitcount._after_jax import after_import_of_jax, forget
from jitcount._miscompiles.known import has_recognisable

if TYPE_CHECKING:
    from collections.abc import Generator

    from jitcount._miscompiles.checking import CheckedProgram, Checker
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
        self._lines: dict[str, tuple[str, str]] = {}
        """What to say at the end, once for each miscompile: several workers may have found it."""
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
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Fail a test that has compiled a program wrongly, in a fixture or in its call."""
        result = yield
        wrong = [program for program in self._taken() if program.wrong]
        if wrong:
            lines = "\n".join(f"  {program}" for program in wrong)
            pytest.fail(f"what {item.name} compiled is wrong:\n{lines}", pytrace=False)
        return result

    def _taken(self) -> list[CheckedProgram]:
        """The programs that were checked since this was asked before."""
        if self._checker is None:
            return []
        taken, self._checker.programs = self._checker.programs, []
        return taken

    def pytest_sessionfinish(self) -> None:
        """Gather what is suspected; a worker of pytest-xdist sends it."""
        if self._suspects is None:
            return
        how = "pytest --compile-check says whether it is wrong"
        lines = self._suspects.lines("a test that it makes wrong fails" if self._checks else how)
        sent = getattr(self._config, "workeroutput", None)
        if sent is None:
            self._lines = lines
        else:
            sent[_SENT] = lines

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a worker has sent; one that crashed has sent nothing."""
        self._lines = (getattr(node, "workeroutput", None) or {}).get(_SENT, {}) | self._lines

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say which programs this release is known to miscompile."""
        if self._lines:
            terminalreporter.section("miscompiles")
            for warning, program in self._lines.values():
                terminalreporter.write_line(warning)
                terminalreporter.write_line(f"  {program}")

    def pytest_unconfigure(self) -> None:
        """Leave JAX as it was."""
        forget(self._callback)
        self._block.close()
