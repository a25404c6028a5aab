"""jitcount counts, explains and prices every compile that a JAX program makes.

Importing it initialises no backend, prints nothing and changes no setting of JAX's. It does not
import JAX either: the names below are looked up when they are used. But it listens from here on,
or from when the program itself imports JAX, so that it can say later what has changed since.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from jitcount._after_jax import after_import_of_jax

if TYPE_CHECKING:
    from jitcount._buckets.bucketed import bucketed
    from jitcount._buckets.check import check_padding
    from jitcount._buckets.plan import BucketGrid, BucketPlan, plan_buckets
    from jitcount._emulate.as_if import as_if
    from jitcount._emulate.result import Emulation
    from jitcount._explain.caller import Caller
    from jitcount._explain.causes import Cause, Kind
    from jitcount._explain.compile import Argument, Compile
    from jitcount._ledger.compare import compare
    from jitcount._ledger.comparison import Comparison
    from jitcount._ledger.files import LedgerError
    from jitcount._ledger.ledger import Ledger, load
    from jitcount._loops.result import Loop
    from jitcount._problem import cache_independent_count
    from jitcount._profile.result import Line, Profile
    from jitcount._record.guard import RecompileError, freeze, max_compiles
    from jitcount._record.log import CompileLog
    from jitcount._record.record import record
    from jitcount._suite.own_cases import case
    from jitcount._targets.result import OnTarget
    from jitcount._tolerance.assertions import assert_close, assert_same
    from jitcount._tolerance.tolerance import Tolerance, tolerance
    from jitcount._tolerance.tracing import NotTraceableError

    __version__: str

__all__ = [
    "Argument",
    "BucketGrid",
    "BucketPlan",
    "Caller",
    "Cause",
    "Comparison",
    "Compile",
    "CompileLog",
    "Emulation",
    "Kind",
    "Ledger",
    "LedgerError",
    "Line",
    "Loop",
    "NotTraceableError",
    "OnTarget",
    "Profile",
    "RecompileError",
    "Tolerance",
    "as_if",
    "assert_close",
    "assert_same",
    "bucketed",
    "cache_independent_count",
    "case",
    "check_padding",
    "compare",
    "freeze",
    "load",
    "max_compiles",
    "plan_buckets",
    "record",
    "tolerance",
]

# Where each name is; what type checkers and editors read stands above, and a test compares.
_HOMES = {
    "Argument": "_explain.compile",
    "BucketGrid": "_buckets.plan",
    "BucketPlan": "_buckets.plan",
    "Caller": "_explain.caller",
    "Cause": "_explain.causes",
    "Comparison": "_ledger.comparison",
    "Compile": "_explain.compile",
    "CompileLog": "_record.log",
    "Emulation": "_emulate.result",
    "Kind": "_explain.causes",
    "Ledger": "_ledger.ledger",
    "LedgerError": "_ledger.files",
    "Line": "_profile.result",
    "Loop": "_loops.result",
    "NotTraceableError": "_tolerance.tracing",
    "OnTarget": "_targets.result",
    "Profile": "_profile.result",
    "RecompileError": "_record.guard",
    "Tolerance": "_tolerance.tolerance",
    "as_if": "_emulate.as_if",
    "assert_close": "_tolerance.assertions",
    "assert_same": "_tolerance.assertions",
    "bucketed": "_buckets.bucketed",
    "cache_independent_count": "_problem",
    "case": "_suite.own_cases",
    "check_padding": "_buckets.check",
    "compare": "_ledger.compare",
    "freeze": "_record.guard",
    "load": "_ledger.ledger",
    "max_compiles": "_record.guard",
    "plan_buckets": "_buckets.plan",
    "record": "_record.record",
    "tolerance": "_tolerance.tolerance",
}


def _listen() -> None:
    """Start to listen to JAX, which this imports."""
    importlib.import_module("jitcount._registry")


if not TYPE_CHECKING:  # a type checker would take every misspelt name for one of these

    def __getattr__(name: str) -> object:
        if name == "__version__":
            value = _version()
        elif name in _HOMES:
            _listen()
            value = getattr(importlib.import_module(f"jitcount.{_HOMES[name]}"), name)
        else:
            raise AttributeError(f"module 'jitcount' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext jitcount``: adds ``%%jitcount``, which shows what a cell compiles."""
    from jitcount._notebook import load  # noqa: PLC0415

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """``%unload_ext jitcount``: removes ``%%jitcount`` from IPython."""
    from jitcount._notebook import unload  # noqa: PLC0415

    unload(shell)


def _version() -> str:
    """The version that is installed; ``0+unknown`` for a copy that is not installed."""
    from importlib import metadata  # noqa: PLC0415 (only who asks pays for it)

    try:
        return metadata.version("jitcount")
    except metadata.PackageNotFoundError:
        return "0+unknown"


after_import_of_jax(_listen)
