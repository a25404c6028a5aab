"""A plugin of pytest that writes what became of each test at once, as lines of JSON.

`tools.jax_tests` reads them. A process that dies has written all tests that ended before, and the
one that was running; the next process leaves these out, and runs the others.
"""

from __future__ import annotations

import inspect
import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

LINES = "JITCOUNT_JAX_TESTS_LINES"
"""The variable with the file to add lines to."""

ONLY = "JITCOUNT_JAX_TESTS_ONLY"
"""The variable with a file that names the tests to run, as a list in JSON; without it, all."""

VARIANTS = "JITCOUNT_JAX_TESTS_VARIANTS"
"""The variable with how many variants of a test to run at most; without it, all."""

DEVICE = "JITCOUNT_JAX_TESTS_DEVICE"
"""The variable with what JAX's tests are to take the device for: "tpu", "gpu"."""


def pytest_configure(config: pytest.Config) -> None:
    """Write the tests of this run."""
    config.pluginmanager.register(_Lines(config, Path(os.environ[LINES])), "jax-tests-lines")


def read(lines: Path) -> dict[str, dict[str, Any]]:
    """The last line of each test in a file; one that only began has no outcome."""
    if not lines.exists():
        return {}
    found = [json.loads(line) for line in lines.read_text().splitlines()]
    return {line["test"]: line for line in found}


def _take_variants(items: list[pytest.Item]) -> None:
    """Leave out all but a few variants of each test, from the first on, evenly spaced."""
    most = int(os.environ.get(VARIANTS) or len(items) or 1)
    groups: dict[object, list[pytest.Item]] = {}
    for item in items:
        function: Any = inspect.unwrap(item.obj)  # type: ignore[attr-defined]
        groups.setdefault(getattr(function, "__code__", item), []).append(item)
    chosen = {
        id(item) for group in groups.values() for item in group[:: math.ceil(len(group) / most)]
    }
    items[:] = [item for item in items if id(item) in chosen]


class _Lines:
    """Adds a line when a test begins, and one when it has ended."""

    def __init__(self, config: pytest.Config, lines: Path) -> None:
        self._config = config
        self._lines = lines
        self._outcome = ""
        self._why = ""
        self._seen = 0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out the tests that nobody asks for, and those that an earlier process has run."""
        _take_variants(items)
        done = read(self._lines)
        only = os.environ.get(ONLY)
        chosen = None if only is None else set(json.loads(Path(only).read_text()))
        items[:] = [
            item
            for item in items
            if item.nodeid not in done and (chosen is None or item.nodeid in chosen)
        ]

    def pytest_collection_finish(self) -> None:
        """Have JAX's tests take the device for another: they are the same tests as on the CPU."""
        if device := os.environ.get(DEVICE):
            import jax  # noqa: PLC0415 (its option exists once a test was imported)

            jax.config.update("jax_test_dut", device)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Write a test around its run."""
        self._outcome, self._why = "passed", ""
        self._write({"test": item.nodeid})
        result = yield
        line = {"test": item.nodeid, "outcome": self._outcome, "why": self._why}
        self._write(line | self._programs())
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what became of one phase of a test."""
        if self._outcome == "passed" and report.outcome != "passed":
            self._outcome = report.outcome
            crash = getattr(report.longrepr, "reprcrash", None)
            if crash is not None:
                self._why = crash.message.strip()[:1000]
            elif isinstance(report.longrepr, tuple):  # of a test that was skipped
                self._why = str(report.longrepr[2])

    def _programs(self) -> dict[str, Any]:
        """How many programs a test compiled as if for a target, and why some were not carried."""
        plugin: Any = self._config.pluginmanager.get_plugin("jitcount-as-if")
        if plugin is None or plugin.emulation is None:
            return {}
        programs = plugin.emulation.programs
        new, self._seen = programs[self._seen :], len(programs)
        reasons = [program.reason for program in new if not program.faithful]
        return {"programs": len(new), "not_carried_over": reasons}

    def _write(self, line: dict[str, Any]) -> None:
        with self._lines.open("a") as file:
            file.write(json.dumps(line) + "\n")
