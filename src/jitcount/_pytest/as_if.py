"""``--as-if=T``: a whole run of pytest computes as a target would."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from jitcount._after_jax import after_import_of_jax, forget
from jitcount._pytest.tolerances import line_in, tolerance_that_would_do
from jitcount._show.emulation_table import EmulationSums, is_rounding, sums_table, title_of
from jitcount._show.terminal import render
from jitcount._targets.host import prefer_cpu
from jitcount._targets.installed import require_usable
from jitcount_pytest import SAME

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from jitcount._emulate.result import EmulatedProgram, Emulation


class AsIf:
    """Emulates a target from the tests' import of JAX on, until the run ends; in each worker."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._target = config.getoption("jitcount_as_if")
        self._has_exact_products = config.getoption("jitcount_as_if_exact")
        self._sums = EmulationSums()
        try:
            require_usable(self._target)
        except (ValueError, ImportError) as error:
            pytest.exit(str(error), 2)
        self._is_rounding = is_rounding(self._target)
        self._title = _lowered(title_of(self._target).removeprefix("Computed "))
        if self._is_rounding and self._has_exact_products:
            pytest.exit(f"--as-if-exact-products is for a target: not with {self._target}", 2)
        prefer_cpu()
        self._block = contextlib.ExitStack()
        self.emulation: Emulation | None = None
        self._problem = ""
        self._has_raised = False
        """Whether the test itself did: it may also fail by its count, or for not failing."""
        self._before = 0
        self._callback = self._begin  # one object: a bound method is a new one each time
        after_import_of_jax(self._callback)

    def _begin(self) -> None:
        from jitcount._emulate.as_if import as_if  # noqa: PLC0415 (it needs JAX)

        try:
            block = as_if(self._target, exact_products=self._has_exact_products)
            self.emulation = self._block.enter_context(block)
        except Exception as error:  # noqa: BLE001 (the tests' own import must not fail)
            self._problem = f"not {self._title}: {_first_line(error)}"

    @pytest.hookimpl(wrapper=True, trylast=True)  # nearest to the test: what raises is the test's
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Fail a test that has run as on the CPU: it would pass for nothing."""
        self._has_raised = True
        result = yield
        self._has_raised = bool(vars(item).get(_KEPT))
        if self._problem:
            pytest.fail(self._problem, pytrace=False)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Say of a failed test whether it fails only there, and where the target rounds."""
        report = yield
        if self.emulation is not None:
            if report.failed:
                text = "\n\n".join(filter(None, self._explained(item, call)))
                if text:
                    report.sections.append((self._title, text))
            if call.when == "teardown":
                self._before = len(self.emulation.programs)
        return report

    def _explained(self, item: pytest.Item, call: pytest.CallInfo[None]) -> list[str]:
        """Texts that say what a failure has to do with the target, and show its test's programs."""
        from jitcount._emulate.as_if import (  # noqa: PLC0415 (it needs JAX)
            as_on_the_cpu,
            emulated_instead,
        )

        assert self.emulation is not None  # noqa: S101
        programs = self.emulation.programs[self._before :]
        if call.when != "call" or not self._has_raised:
            return [self._table(programs)]
        if not programs and not self._may_compute(item):
            return []  # it would be called twice for nothing
        with as_on_the_cpu():
            error = _called_again(item)
        if error:
            return [f"Called again as on the CPU it fails, too: {error}", self._table(programs)]
        if self._is_rounding:
            return [
                f"{_ONLY} {self._title}: called again as on the CPU it passes.",
                *_place(item, call),
            ]
        if not any(program.roundings for program in programs):
            # What an earlier test has compiled was not compiled for this one.
            with emulated_instead(self.emulation.emulator) as again:
                _called_again(item)
            programs = again.programs
        return [
            f"{_ONLY} {self._title}: called again as on the CPU it passes. {self._exactly(item)}",
            self._table(programs),
        ]

    @staticmethod
    def _may_compute(item: pytest.Item) -> bool:
        """Whether a test that has compiled nothing may have run what was compiled before."""
        from jitcount._pytest.reaches_jax import reaches_jax  # noqa: PLC0415 (with JAX only)

        function, given = getattr(item, "obj", None), getattr(item, "funcargs", {})
        return function is None or reaches_jax(function, *given.values())

    def _exactly(self, item: pytest.Item) -> str:
        """Whether the rounding of products is why it fails there, or something else."""
        from jitcount._emulate.arithmetic import EXACT  # noqa: PLC0415 (the room needs JAX)
        from jitcount._emulate.as_if import emulated_instead  # noqa: PLC0415
        from jitcount._emulate.emulator import Emulator  # noqa: PLC0415

        assert self.emulation is not None  # noqa: S101
        emulator = self.emulation.emulator
        assert isinstance(emulator, Emulator)  # noqa: S101 (other rounding has no exact products)
        if self._has_exact_products:
            return "Its products are exact: it is something else than their rounding."
        with emulated_instead(replace(emulator, arithmetic=EXACT)):
            error = _called_again(item)
        if error:
            return f"There it fails with exact products, too: {error}"
        return "There it passes with exact products, too: it is their rounding."

    def _table(self, programs: Sequence[EmulatedProgram]) -> str:
        sums = EmulationSums.from_programs(programs)
        return render(sums_table(self._target, sums)) if programs else ""

    def pytest_sessionfinish(self) -> None:
        """Add up what was computed; a worker of pytest-xdist sends it."""
        if self.emulation is None:
            return
        sums = EmulationSums.from_programs(self.emulation.programs).plain()
        sent = getattr(self._config, "workeroutput", None)
        if sent is None:
            self._sums.join(sums)
        else:
            sent[_SENT] = sums

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a worker has sent; one that crashed has sent nothing."""
        sums = (getattr(node, "workeroutput", None) or {}).get(_SENT)
        if sums is not None:
            self._sums.join(sums)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """How much was computed as the target's own would, and what fails only there."""
        title = self._title
        failed = terminalreporter.stats.get("failed", [])
        found = {report.nodeid: _why_only_there(report, title) for report in failed}
        only = {name: why for name, why in found.items() if why is not None}
        if not self._sums.programs and not only:
            return
        terminalreporter.section(title)
        if self._sums.programs:
            terminalreporter.write_line(render(sums_table(self._target, self._sums)))
        if only:
            terminalreporter.write_line(f"{len(only)} of {len(failed)} failed tests fail only so:")
            for name, why in only.items():
                terminalreporter.write_line(f"  {name}{why and f': {why}'}")

    def pytest_unconfigure(self) -> None:
        """Leave JAX as it was."""
        forget(self._callback)
        self._block.close()


_ONLY = "It fails only"

_AT = "At "

_SENT = "jitcount_as_if"

# A TestCase raises nothing: it keeps what happened.
_KEPT = "_excinfo"


def _lowered(title: str) -> str:
    """A title within a sentence: ``"as if on tpu:v5e"``, ``"with other rounding (seed 0)"``."""
    return title[0].lower() + title[1:]


def _place(item: pytest.Item, call: pytest.CallInfo[None]) -> list[str]:
    """The line at which a test failed, with the tolerance that would do."""
    if call.excinfo is None:
        return []
    line, wanted = line_in(item, call.excinfo), tolerance_that_would_do(str(call.excinfo.value))
    wanted = wanted or "its assertion does not say by how much"
    return [f"{_AT}{line}: {wanted}" if line else wanted]


def _why_only_there(report: Any, title: str) -> str | None:
    """The place of a failure that happens only there, and what would do; None of others."""
    for name, text in report.sections:
        if name == title and text.startswith(_ONLY):
            last = text.splitlines()[-1]
            return last.removeprefix(_AT) if last.startswith(_AT) else ""
    return None


def _called_again(item: pytest.Item) -> str:
    """Call a test once more, with the fixtures that it has; returns what it raised, in a line."""
    silent = io.StringIO()
    same = item.stash.get(SAME, None)
    try:
        with (
            contextlib.redirect_stdout(silent),
            contextlib.redirect_stderr(silent),
            same.called_again() if same is not None else contextlib.nullcontext(),
        ):
            item.runtest()
    except KeyboardInterrupt:  # Ctrl-C ends the run; `sys.exit` in a test only fails that
        raise
    except BaseException as error:  # noqa: BLE001 (pytest's own outcomes are no Exceptions)
        return _first_line(error)
    kept = item.__dict__.pop(_KEPT, None)
    return _first_line(kept[-1].value) if kept else ""


def _first_line(error: BaseException) -> str:
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
