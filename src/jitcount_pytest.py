"""The entry point of the pytest plugin: pytest imports this file in every project, so it is small.

The work is done in `jitcount._pytest`, imported if a test, an option or an ini value asks for it.
Neither imports JAX before the tests do.
"""

from __future__ import annotations

import copy
import os
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

MARKERS = {
    "compiles": "compiles(step=2, add=1): the test compiles exactly these functions, so often",
    "max_compiles": "max_compiles(3): the test compiles at most so often",
    "no_compiles": "no_compiles: the test compiles nothing; warm up in a fixture",
}


SAME = pytest.StashKey[Any]()
"""The fixture `same` of a test that has asked for it."""

_SHOWN = 10
"""How many fixes, tests and fixtures ``--compiles`` shows without a number."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and the ini values."""
    group = parser.getgroup("jitcount", "compiles of JAX programs (jitcount)")
    group.addoption(
        "--compiles", nargs="?", const=_SHOWN, metavar="N", dest="jitcount_show",
        help="show at the end what to fix and which tests compile most, N of each (10 by default)",
    )  # fmt: skip
    group.addoption(
        "--compile-ledger", metavar="FILE", dest="jitcount_ledger",
        help="write all that was compiled, test by test and in fixtures, to this file",
    )  # fmt: skip
    group.addoption(
        "--compile-budget", metavar="FILE", dest="jitcount_budget",
        help="fail a test that compiles more than this committed file allows",
    )  # fmt: skip
    group.addoption(
        "--compile-update", action="store_true", dest="jitcount_update",
        help="put the counts of tests that ran and passed into the budget, and take out tests that "
        "are no longer there",
    )  # fmt: skip
    group.addoption(
        "--compile-review", action="store_true", dest="jitcount_review",
        help="show what --compile-update would change, and write nothing",
    )  # fmt: skip
    group.addoption(
        "--compile-target", action="append", default=[], metavar="T", dest="jitcount_targets",
        help="compile for this TPU or GPU too, without having it: tpu:v5e, cuda:h100, ... "
        "(jitcount targets lists them), and show at the end what its compiler said",
    )  # fmt: skip
    group.addoption(
        "--compile-fail-on-refusal", action="store_true", dest="jitcount_fail_on_refusal",
        help="with --compile-target, fail a test that compiles what a target's compiler refuses",
    )  # fmt: skip
    group.addoption(
        "--as-if", default="", metavar="T", dest="jitcount_as_if",
        help="compute as this TPU or GPU would, without having it: its compiler's programs, its "
        "roundings; a failed test shows the lines that round; or with other roundings than this "
        "machine's, as any backend may: rounding, or rounding:7 for another seed",
    )  # fmt: skip
    group.addoption(
        "--as-if-exact-products", action="store_true", dest="jitcount_as_if_exact",
        help="with --as-if, leave out the rounding of products: what fails has another reason",
    )  # fmt: skip
    group.addoption(
        "--compile-check", action="store_true", dest="jitcount_check",
        help="compute what a test compiles operation by operation too, and fail the test if that "
        "differs by more than rounding can",
    )  # fmt: skip
    group.addoption(
        "--compile-isolation", choices=["clear", "none"], dest="jitcount_isolation",
        help="clear JAX's caches for each test that holds a count (a marker, the fixture "
        "compiles, a budget), so that it does not depend on what ran before (default), or count "
        "as they come",
    )  # fmt: skip
    group.addoption(
        "--compile-redact", action="store_true", dest="jitcount_redact",
        help="leave out what static arguments were, in the ledger and in all that is shown",
    )  # fmt: skip
    group.addoption(
        "--same-update", action="store_true", dest="jitcount_same_update",
        help="put what the fixture same was given, in tests that ran and passed, into the file of "
        "references, and take out tests that are no longer there",
    )  # fmt: skip
    parser.addini(
        "same_file", "the file of the references of the fixture same", default="same.json"
    )
    parser.addini("compile_redact", "as --compile-redact", "bool", default=False)
    parser.addini("compile_budget", "the budget's file, as --compile-budget", default="")
    parser.addini("compile_budget_eager", "whether eager ones are in it", "bool", default=False)
    parser.addini(
        "compile_budget_operations",
        "whether the budget holds the operations of programs, too",
        "bool",
        default=False,
    )
    parser.addini("compile_isolation", "as --compile-isolation", default="clear")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> None:
    """Begin to count before conftest files are read, if the run shows or saves compiles.

    The file in ``--compiles test_b.py`` is read as a file: N is given as ``--compiles=N``.
    """
    options = args[: args.index("--")] if "--" in args else args
    bare = [place for place, word in enumerate(options) if word == "--compiles"]
    for place in bare:
        args[place] = f"--compiles={_SHOWN}"
    if bare:  # the paths by which pytest looks for conftest files were read before this
        known = parser.parse_known_args(args, namespace=copy.copy(early_config.option))
        early_config.known_args_namespace.file_or_dir = known.file_or_dir
    given = early_config.known_args_namespace
    if given.jitcount_show not in {None, "0"} or given.jitcount_ledger:
        _count_outside_calls(early_config)


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and what the options ask for."""
    for line in MARKERS.values():
        config.addinivalue_line("markers", line)
    if (chosen := _isolation(config)) not in {"clear", "none"}:
        raise pytest.UsageError(f"compile_isolation is {chosen!r}; it can be clear or none")
    for name in ("compile_budget_eager", "compile_budget_operations", "compile_redact"):
        try:
            config.getini(name)
        except (ValueError, pytest.UsageError) as error:  # of pytest 8, of pytest 9
            raise pytest.UsageError(f"{name}: {error}; it can be true or false") from None
    config.option.jitcount_show = _shown(config)
    if config.getoption("jitcount_as_if"):
        from jitcount._pytest.as_if import AsIf  # noqa: PLC0415 (here and below: if asked for)

        config.pluginmanager.register(AsIf(config), "jitcount-as-if")
    if os.environ.get("GITHUB_ACTIONS") == "true" and not hasattr(config, "workerinput"):
        from jitcount._pytest.github import Github  # noqa: PLC0415

        config.pluginmanager.register(Github(config), "jitcount-github")
    if config.getoption("jitcount_show") or config.getoption("jitcount_ledger"):
        _count_outside_calls(config)  # if a conftest file has loaded this plugin
    _register_run(config)
    if config.getoption("jitcount_same_update"):
        _same_run(config)


def _register_run(config: pytest.Config) -> None:
    """Register what counts all tests, if an option or an ini value asks for it."""
    options = ("show", "ledger", "budget", "update", "review", "targets", "fail_on_refusal")
    wanted = any(config.getoption(f"jitcount_{name}") for name in options)
    wanted = wanted or bool(config.getini("compile_budget"))
    if wanted:
        from jitcount._pytest.run import Run  # noqa: PLC0415

        config.pluginmanager.register(Run(config), "jitcount-run")
    if wanted or config.getoption("jitcount_check"):
        from jitcount._pytest.miscompiles import Miscompiles  # noqa: PLC0415

        config.pluginmanager.register(Miscompiles(config), "jitcount-miscompiles")


def _same_run(config: pytest.Config) -> Any:
    """The references that the fixture `same` holds results to, or that the run updates."""
    from jitcount._pytest.same_run import NAME, SameRun  # noqa: PLC0415

    found = config.pluginmanager.get_plugin(NAME)
    if found is None:
        found = SameRun(config)
        config.pluginmanager.register(found, NAME)
    return found


def _count_outside_calls(config: pytest.Config) -> None:
    """Count what is compiled outside of tests' calls, if that is not so already."""
    from jitcount._pytest.outside_calls import NAME, OutsideCalls  # noqa: PLC0415

    if not config.pluginmanager.has_plugin(NAME):
        config.pluginmanager.register(OutsideCalls(config), NAME)


def _shown(config: pytest.Config) -> int:
    asked = config.getoption("jitcount_show")
    asked = "0" if asked is None else str(asked)
    if not (asked.isascii() and asked.isdecimal() and len(asked) < 10):
        usage = "--compiles takes a count of 0 or more, as in --compiles=3"
        raise pytest.UsageError(f"{usage}; it was given {asked!r}")
    return int(asked)


def _isolation(config: pytest.Config) -> str:
    return str(config.getoption("jitcount_isolation") or config.getini("compile_isolation"))


def _is_counted(item: pytest.Item) -> bool:
    """Whether a test's compiles are counted: for the test itself, or for the whole run."""
    return _asks(item) or item.config.pluginmanager.has_plugin("jitcount-run")


def _holds_count(item: pytest.Item) -> bool:
    """Whether a test's compiles are held to a number."""
    run = item.config.pluginmanager.get_plugin("jitcount-run")
    return _asks(item) or (run is not None and run.budget.holds_counts)


def _asks(item: pytest.Item) -> bool:
    return _is_marked(item) or "compiles" in getattr(item, "fixturenames", ())


def _is_marked(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in MARKERS)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Isolate tests from each other, if some of them hold a count."""
    config = session.config
    if _isolation(config) == "none" or config.getoption("collectonly"):
        return
    if any(map(_holds_count, session.items)):
        from jitcount._pytest.isolation import Isolation  # noqa: PLC0415

        isolation = Isolation(session.items, _holds_count)
        config.pluginmanager.register(isolation, "jitcount-isolation")


@pytest.fixture
def compiles(request: pytest.FixtureRequest) -> Any:
    """A log of what the test's call phase compiles: `jitcount.CompileLog`."""
    from jitcount._pytest import counting  # noqa: PLC0415

    return counting.log_of(request.node)


@pytest.fixture
def same(request: pytest.FixtureRequest) -> Any:
    """Judge and keep a result: ``same(f, *args)`` or ``same(value)``, which return it.

    A function's result must be within the tolerance that `jitcount.tolerance` derives, and both
    within that of the reference that the project has committed, if it has.
    """
    from jitcount._pytest.same import Same  # noqa: PLC0415

    found = request.node.stash[SAME] = Same(request.node.nodeid, _same_run(request.config))
    return found


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin to count before the fixtures, one of which is the log: a rerun is counted anew."""
    if _is_counted(item):
        from jitcount._pytest import counting  # noqa: PLC0415

        counting.begin(item)
        if _holds_count(item):
            # With all that a failure shows: pytest's import hook uses what a test may mock.
            from jitcount._pytest import checks  # noqa: F401, PLC0415


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Count what the test itself compiles."""
    if not _is_counted(item):
        return (yield)
    from jitcount._pytest import counting  # noqa: PLC0415

    is_marked = _is_marked(item)
    try:
        if is_marked:
            from jitcount._pytest import checks  # noqa: PLC0415

            checks.require_usable_markers(item)
        with counting.counted(item):
            result = yield
    finally:
        counting.note_costs(item)
    counting.require_counted(item)
    if is_marked:
        checks.check_markers(item)
    run = item.config.pluginmanager.get_plugin("jitcount-run")
    if run is not None:
        run.budget.check(item, counting.log_of(item))
    if item.config.getoption("jitcount_fail_on_refusal"):
        from jitcount._pytest import checks  # noqa: PLC0415

        checks.check_targets(item)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with a failed test that holds a count what it compiled."""
    report = yield
    if call.when == "call" and SAME in item.stash:
        from jitcount._pytest.same import attach  # noqa: PLC0415

        attach(item.stash[SAME], report)
    if call.when == "call" and report.failed and _holds_count(item):
        from jitcount._pytest import checks  # noqa: PLC0415

        checks.report_failure(item, report)
    return report


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what the fixture `same` did not judge, or by a declared bound only."""
    reports = [
        report
        for of_kind in terminalreporter.stats.values()
        for report in of_kind
        if getattr(report, "jitcount_same", "")
    ]
    if reports:
        from jitcount._pytest.same import summary  # noqa: PLC0415

        if lines := summary(config, reports):
            terminalreporter.section("same")
            for line in lines:
                terminalreporter.write_line(line)
