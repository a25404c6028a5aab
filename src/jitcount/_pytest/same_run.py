"""The committed references that a run of pytest is held to, or that it updates.

Like the plugin's entry it imports neither JAX nor NumPy before the tests have. `same` is the
fixture that uses them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jitcount._ledger import files
from jitcount._ledger.files import LedgerError, require_replaceable
from jitcount._pytest.budget import collected_tests

if TYPE_CHECKING:
    from pathlib import Path

    from jitcount._ledger.references import OfTest, References

NAME = "jitcount-same"
"""The plugin's name, by which others find it."""


class SameRun:
    """The references of a run; read when a test first asks for them."""

    def __init__(self, config: pytest.Config) -> None:
        self.name: str = config.getini("same_file")
        """The file, as the project names it from its root."""

        self._path: Path = config.rootpath / self.name
        self._is_updated = bool(config.getoption("jitcount_same_update"))
        self._is_worker = hasattr(config, "workerinput")
        self._references: References | None = None
        self._sent: dict[str, str] = {}
        self._passed: dict[str, bool] = {}
        self._said: list[str] = []
        if self._is_updated:
            self._collected = collected_tests(config)
            try:
                require_replaceable(self._path, files.REFERENCES)
            except LedgerError as error:
                pytest.exit(str(error), 2)

    def references(self, test: str) -> OfTest:
        """The references of a test; none where they are updated, whatever they were."""
        if self._is_updated:
            return {}
        if self._references is None:
            from jitcount._ledger.references import read_references  # noqa: PLC0415 (NumPy)

            try:
                self._references = read_references(self._path)
            except LedgerError as error:
                pytest.exit(str(error), 2)
        return self._references.tests.get(test, {})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather what the tests returned, whichever worker ran them."""
        so_far = report.when == "setup" or self._passed.get(report.nodeid, False)
        self._passed[report.nodeid] = so_far and report.passed
        if report.when == "call":
            self._sent[report.nodeid] = getattr(report, "jitcount_same", "")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Put what the tests that passed returned into the file, if the run came to its end."""
        if not self._is_updated or self._is_worker or not self._passed:
            return
        if exitstatus not in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}:
            self._said = [f"{self._path} is left as it is: the run did not come to its end"]
            return
        from jitcount._ledger.references import update_references  # noqa: PLC0415 (NumPy)
        from jitcount._pytest.same import returned_in  # noqa: PLC0415 (JAX)

        passed = [test for test, has_passed in self._passed.items() if has_passed]
        measured = {test: returned_in(self._sent.get(test, "")) for test in passed}
        try:
            changed = update_references(self._path, measured, self._collected.is_gone)
        except LedgerError as error:
            pytest.exit(str(error), 2)
        if left := len(self._passed) - len(passed):
            tests = "1 test that" if left == 1 else f"{left} tests that"
            self._said.append(f"{tests} did not pass: as before")
        self._said.append(f"wrote {self._path}: {changed}")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say what became of the file."""
        if self._said:
            terminalreporter.section("references")
            for line in self._said:
                terminalreporter.write_line(line)
