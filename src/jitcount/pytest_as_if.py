"""``--as-if=T``: a whole run of pytest computes as a target would."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from jitcount._after_jax import after_import_of_jax, forget
from jitcount.show.terminal import render
from jitcount.targets.host import prefer_cpu
from jitcount.targets.installed import require_installed
from jitcount.targets.names import parse

if TYPE_CHECKING:
    from collections.abc import Generator

    from jitcount.emulate.result import Emulation


class AsIf:
    """From the tests' import of JAX on, until the run ends; in each worker, if there are some."""

    def __init__(self, config: pytest.Config) -> None:
        self._target = config.getoption("jitcount_as_if")
        try:
            require_installed(parse(self._target))
        except (ValueError, ImportError) as error:
            pytest.exit(str(error), 2)
        prefer_cpu()
        self._block = contextlib.ExitStack()
        self._emulation: Emulation | None = None
        self._before = 0
        self._callback = self._begin  # one object: a bound method is a new one each time
        after_import_of_jax(self._callback)

    def _begin(self) -> None:
        from jitcount.emulate.as_if import as_if  # noqa: PLC0415 (it needs JAX)

        self._emulation = self._block.enter_context(as_if(self._target))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Show with a failed test where the target rounds what it computed, and what it did not."""
        report = yield
        if self._emulation is not None:
            if report.failed and (text := self._since(self._before)):
                report.sections.append((f"as if on {self._target}", text))
            if call.when == "teardown":
                self._before = len(self._emulation.programs)
        return report

    def _since(self, first: int) -> str:
        from jitcount.emulate.result import Emulation  # noqa: PLC0415 (the same)
        from jitcount.show.emulation_table import emulation_table  # noqa: PLC0415

        assert self._emulation is not None  # noqa: S101
        programs = self._emulation.programs[first:]
        shown = Emulation(self._emulation.emulator, programs)
        return render(emulation_table(shown)) if programs else ""

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """How much of what was compiled computed as the target's own would."""
        if self._emulation is not None and (text := self._since(0)):
            terminalreporter.section(f"as if on {self._target}")
            terminalreporter.write_line(text)

    def pytest_unconfigure(self) -> None:
        """Leave JAX as it was."""
        forget(self._callback)
        self._block.close()
