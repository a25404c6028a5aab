"""Operations outside of jit, each compiled by itself: which call of the user's to jit instead.

An ``init`` that is not jitted compiles dozens of operations, at as many lines. They are summed up
over the tree of calls that led to them, and the call that explains most and can be jitted is named.
What is left stands at lines of functions that cannot be jitted as a whole.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

from jitcount._explain.caller import NEEDS_VALUES, Caller
from jitcount._explain.causes.cause import Kind, in_a_list
from jitcount._explain.fix import CACHE_SETTINGS, IMPORTS, OUTSIDE_JIT, Fix
from jitcount._explain.summary import is_first
from jitcount._observe.call_site import CallSite

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jitcount._explain.compile import Compile

# Fewer operations than these are hardly worth a jit, which is compiled once itself.
_MANY_OPERATIONS = 5

# So many lines of a library, or of an import, are named.
_MOST_LINES = 3

# One call in the source: where it stands, and what it calls.
_Call: TypeAlias = tuple[CallSite, str]


def outside_jit(compiles: Sequence[Compile]) -> list[Fix]:
    """A fix for each call, and each import, that compiles operations one by one."""
    drivers = set(_calls_that_run_jitted_functions(compiles))
    left = [compiled for compiled in compiles if compiled.eager]
    found, left = _imports(left)
    no_jit = drivers | set(_calls_that_need_values(left))
    while (call := _best(left, no_jit)) is not None:
        below = [c for c in left if any(_key(caller) == call for caller in c.callers)]
        gone = set(map(id, below))
        left = [c for c in left if id(c) not in gone]
        found.append(_fix_of_call(call, list(filter(_saved, below))))
    return found + _lines(list(filter(_saved, left)), drivers, no_jit)


def _key(caller: Caller) -> _Call:
    return caller.site, caller.calls


def _calls_that_run_jitted_functions(compiles: Sequence[Compile]) -> Iterator[_Call]:
    """The calls below which a jitted function runs: trainers, loops, whole programs."""
    for compiled in compiles:
        if not compiled.eager:
            yield from map(_key, compiled.callers)


def _calls_that_need_values(compiles: Sequence[Compile]) -> Iterator[_Call]:
    """The calls below which NumPy, or what computes with it, was given an array of JAX's.

    Where a library calls a function of the user's that does so, every call of that library may.
    """
    given = [compiled.callers for compiled in compiles if _host_library(compiled)]
    libraries = {caller.library for callers in given for caller in callers[:-1]} - {""}
    for callers in given:
        yield from map(_key, callers)
    for compiled in compiles:
        yield from (_key(caller) for caller in compiled.callers if caller.library in libraries)


# --- A call that can be jitted --------------------------------------------------------------------


def _best(compiles: Sequence[Compile], no_jit: set[_Call]) -> _Call | None:
    """The call that can be jitted and explains most seconds; None where none is worth it."""
    seconds: Counter[_Call] = Counter()
    below: dict[_Call, list[Compile]] = {}
    for compiled in compiles:
        for call in dict.fromkeys(_key(c) for c in compiled.callers if c.jitted):
            if call not in no_jit:
                seconds[call] += _saved(compiled)  # type: ignore[assignment]  # typed as counts
                below.setdefault(call, []).append(compiled)
    return next((call for call, _ in seconds.most_common() if _is_worth_it(below[call])), None)


def _is_worth_it(compiles: Sequence[Compile]) -> bool:
    small = list(filter(_saved, compiles))
    again = sum(not is_first(compiled) for compiled in small)
    return len(small) >= _MANY_OPERATIONS or again > 1


# Operations that are programs by themselves.
_LOOPS = {"cond", "custom_linear_solve", "scan", "while"}


def _saved(compiled: Compile) -> float:
    """The seconds that a jit around an operation saves: none of a loop, which it compiles as well.

    A loop whose body is made anew is another one at each call, and under a jit it is not.
    """
    is_saved = compiled.function not in _LOOPS or _is_made_anew(compiled)
    return compiled.total_s if is_saved else 0.0


def _is_made_anew(compiled: Compile) -> bool:
    """Whether a loop has another body than before, of the same source."""
    return any(cause.kind == Kind.NEW_FUNCTION for cause in compiled.causes)


def _fix_of_call(call: _Call, below: Sequence[Compile]) -> Fix:
    caller = next(c for c in below[0].callers if _key(c) == call)
    return Fix(
        code=OUTSIDE_JIT,
        title="operations outside of jit",
        what=caller.calls,
        call_site=caller.site,
        count=len(below),
        seconds=sum(compiled.total_s for compiled in below),
        is_at_most=True,
        changes=(),
        advices=(_advice_for_call(caller),),
        compiles=tuple(below),
    )


def _advice_for_call(caller: Caller) -> str:
    """The call under a jit; a lambda or a method is another function each time that it is made.

    Equinox has its jits by what they call, so that another one of the same costs nothing.
    """
    is_equinox = caller.jitted.startswith("eqx.")
    is_made_anew = not is_equinox and ("jit(lambda" in caller.jitted or "." in caller.calls)
    if caller.in_loop and is_made_anew:
        return f"{caller.jitted}, and make the jitted function once, before the loop"
    return caller.jitted


# --- Imports --------------------------------------------------------------------------------------


def _imports(compiles: Sequence[Compile]) -> tuple[list[Fix], list[Compile]]:
    """A fix for each import that compiles, and the operations that no import compiles."""
    groups: dict[str, list[Compile]] = {}
    left: list[Compile] = []
    for compiled in compiles:
        importing = [caller for caller in compiled.callers if caller.imports]
        if importing:
            groups.setdefault(importing[-1].imports, []).append(compiled)
        else:
            left.append(compiled)
    return [_fix_of_import(module, group) for module, group in groups.items()], left


def _fix_of_import(module: str, group: Sequence[Compile]) -> Fix:
    caller = next(c for c in reversed(group[0].callers) if c.imports)
    return Fix(
        code=IMPORTS,
        title="import that compiles",
        what=f"import {module}",
        call_site=caller.site,
        count=len(group),
        seconds=sum(compiled.total_s for compiled in group),
        is_at_most=False,
        changes=(),
        advices=(f"make constants with NumPy at {_where(group)}",),
        compiles=tuple(group),
    )


def _where(compiles: Iterable[Compile]) -> str:
    """The innermost lines that are not JAX's, those that compile most first."""
    lines = Counter(_library_line(compiled) or compiled.call_site for compiled in compiles)
    named = [line for line, _ in lines.most_common(_MOST_LINES)]
    if more := len(lines) - len(named):
        return f"{', '.join(named)} and {more} more"
    return " and ".join([", ".join(named[:-1]), named[-1]]) if len(named) > 1 else named[0]


def _library_line(compiled: Compile) -> CallSite | None:
    """The library's line that asked for an operation, where a jit can be; in NumPy it cannot."""
    return None if not compiled.via or _host_library(compiled) else compiled.via


# Libraries that compute and draw with NumPy, and call JAX where they are given an array of JAX's.
_HOST_LIBRARIES = {
    "PIL": "Pillow",
    "cv2": "OpenCV",
    "imageio": "imageio",
    "matplotlib": "matplotlib",
    "mpl_toolkits": "matplotlib",
    "numpy": "NumPy",
    "pandas": "pandas",
    "plotly": "plotly",
    "scipy": "SciPy",
    "seaborn": "seaborn",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
}


def _host_library(compiled: Compile) -> str:
    """The library that was given an array of JAX's, and called JAX: NumPy for ``np.sum(x)``."""
    called = compiled.callers[-1].library if compiled.callers else ""
    return _HOST_LIBRARIES.get(called, "") if called else host_library_of(compiled.via)


def host_library_of(line: str) -> str:
    """The library that a line is of, if it computes with NumPy: ``"scipy/stats/kde.py:3 in f"``."""
    return _HOST_LIBRARIES.get(re.split(r"[/\\]", line, maxsplit=1)[0], "")


# --- Lines of functions that cannot be jitted as a whole ------------------------------------------


# What speaks against a jit of a call, and not against one of a function around it.
_ONLY_OF_A_CALL = {"it returns an object", "its source is not to be had"}


def _lines(compiles: Sequence[Compile], drivers: set[_Call], no_jit: set[_Call]) -> list[Fix]:
    """A fix for each function whose own lines compile many operations, or one again and again.

    Of a whole program, and of functions that run jitted ones, each line is by itself: nobody would
    move all of them into a jitted function. What a library does in a function that it calls back
    is what the call of that library does.
    """
    running = {(site.file, site.function) for site, _ in drivers}
    groups: dict[object, list[Compile]] = {}
    for compiled in compiles:
        site = _asking(compiled).site
        function = (site.file, site.function)
        is_alone = site.function == "<module>" or function in running
        place = site if is_alone else function
        is_driven = _library_line(compiled) is not None and _is_driven(compiled, no_jit)
        is_anew = is_driven and _is_made_anew(compiled)
        kind = place, _host_library(compiled), is_driven, is_anew
        groups.setdefault(kind, []).append(compiled)
    return [
        _fix_of_lines(group, no_jit)
        for group in groups.values()
        if _is_worth_it(group) or _is_drawn(group)
    ]


def _asking(compiled: Compile) -> Caller:
    """The line that asked for an operation: the innermost one, or one further out.

    Where a library calls a function of the user's, which calls the library again, it is the
    outermost line that calls that library.
    """
    if not compiled.callers:
        return Caller(site=compiled.call_site)
    innermost = compiled.callers[-1]
    if not innermost.library or _host_library(compiled):
        return innermost
    return next(c for c in compiled.callers if c.library == innermost.library)


def _is_drawn(group: Sequence[Compile]) -> bool:
    """Whether arrays are given to a library that can do nothing with them but copy them.

    That is always worth a change: nothing is compiled in place of what is compiled now.
    """
    return _host_library(group[0]) not in {"", "NumPy"}


def _fix_of_lines(group: Sequence[Compile], no_jit: set[_Call]) -> Fix:
    sites = [_asking(compiled).site for compiled in group]
    costs: Counter[str] = Counter()
    for site, compiled in zip(sites, group, strict=True):
        costs[site] += compiled.total_s  # type: ignore[assignment]
    most = max(costs, key=costs.__getitem__)
    worst = next(site for site in sites if site == most)
    is_librarys = all(map(_library_line, group))
    return Fix(
        code=OUTSIDE_JIT,
        title="operations outside of jit",
        what="",
        call_site=worst,
        count=len(group),
        seconds=sum(compiled.total_s for compiled in group),
        is_at_most=not _host_library(group[0]),
        changes=(f"a library compiles them at {_where(group)}",) if is_librarys else (),
        advices=(_advice_for_lines(group, no_jit),),
        compiles=tuple(group),
    )


def _advice_for_lines(group: Sequence[Compile], no_jit: set[_Call]) -> str:
    if _library_line(group[0]) and _is_driven(group[0], no_jit):
        if _is_made_anew(group[0]):
            return (
                "the library makes its loops anew at each call: make the object that has them "
                "once, or call it inside of a jitted function"
            )
        return f"nothing to jit here; to keep them for the next run: {CACHE_SETTINGS}"
    numbers = sorted({_asking(compiled).site.line for compiled in group})
    if library := _host_library(group[0]):
        lines = f"line{'s' if len(numbers) > 1 else ''} {in_a_list([*map(str, numbers)])}"
        return (
            f"{library} calls JAX for an array of JAX's at {lines}: pass it np.asarray(...) of that"
        )
    lines = f"lines {numbers[0]} to {numbers[-1]} compute"
    if len(numbers) == 1:
        lines = f"line {numbers[0]} computes"
    asking = sorted(map(_asking, group), key=lambda caller: caller.site.line)
    needing = next((caller for caller in asking if caller.why_not in NEEDS_VALUES), None)
    if needing is None:
        return f"compute what {lines} in a jitted function, or with NumPy"
    where = f"at line {needing.site.line} " if len(numbers) > 1 else ""
    return f"compute what {lines} with NumPy: {where}{needing.why_not}"


def _is_driven(compiled: Compile, no_jit: set[_Call]) -> bool:
    """Whether the library's function that was called is a trainer, or another that no jit takes."""
    asking = _asking(compiled)
    here = [caller for caller in compiled.callers if caller.site == asking.site]
    return any(
        _key(caller) in no_jit or (caller.calls and caller.why_not not in _ONLY_OF_A_CALL | {""})
        for caller in here
    )
