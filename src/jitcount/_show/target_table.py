"""Tables of targets: the list of them, and what their compilers said of each program."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from jitcount._show.parts import (
    Bytes,
    Cell,
    Heading,
    Note,
    Part,
    Row,
    Seconds,
    Table,
    Tone,
    figures,
    long_words,
    words,
)
from jitcount._show.text import arguments_of, name_of, plural, seconds, signature_of, size, times
from jitcount._targets.result import failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from jitcount._explain.compile import Compile
    from jitcount._targets.names import Target
    from jitcount._targets.result import OnTarget

# Of more programs than these, operations outside of jit are summed up.
_FEW = 20

_NOT_COMPILED = "not compiled, see below"
_FELL_BACK = "without Triton kernels, see below"


def targets_table(
    targets: Sequence[tuple[Target, bool]], commands: Sequence[str] = ()
) -> list[Part]:
    """All targets, each with whether it is installed, and the commands for those that are not."""
    rows = []
    for target, is_installed in targets:
        chip, installed = target.chip, "yes" if is_installed else "no"
        rows.append((target.name, chip.description, chip.smallest, installed))
    note = "With a size: tpu:v5e:8 (or 2x4), cuda:h100:8; without, as large as a program needs."
    table = Table(words("target", "chip", "smallest", "installed"), rows)
    return [table, Note(note), *(Note(command, is_whole=True) for command in commands)]


def target_tables(compiles: Sequence[Compile]) -> list[Part]:
    """For each target, what its compiler said of each program; nothing without targets."""
    parts: list[Part] = []
    for name in dict.fromkeys(name for compiled in compiles for name in compiled.on):
        found = [(compiled, compiled.on[name]) for compiled in compiles if name in compiled.on]
        headline = _headline(name, [[result for _, result in found]])
        parts += [Heading(headline), _table(found), *_below(found)]
    return parts


def _below(found: Sequence[tuple[Compile, OnTarget]]) -> list[Note]:
    """Why programs were not compiled, or not as they are, whole: a table has no room for it."""
    counts = Counter(
        (compiled.function, compiled.call_site, _why(result), result.error is not None)
        for compiled, result in found
        if result.error is not None or result.fallback
    )
    return [
        Note(
            f"{times(function, count)} at {where}: {why}",
            depth=1,
            tone=Tone.DIFFERENT if is_failure else Tone.PLAIN,
        )
        for (function, where, why, is_failure), count in counts.items()
    ]


def _why(result: OnTarget) -> str:
    return result.fallback if result.error is None else failure(result.error)


def targets_summary(found: Mapping[str, Sequence[Compile]]) -> list[Part]:
    """For each target, how much its compiler made of all tests, and what it did not."""
    results: dict[str, dict[str, list[OnTarget]]] = {}
    noted = []
    for test, compiles in found.items():
        for compiled in compiles:
            for name, result in compiled.on.items():
                results.setdefault(name, {}).setdefault(test, []).append(result)
                note = _why(result) or _note(result)
                if note:
                    call = f"{compiled.function}({signature_of(compiled.signature)})"
                    noted.append(f"{name}, {test}: {call}: {note}")
    lines = [_headline(name, by_test.values()) for name, by_test in results.items()]
    notes: list[Part] = [*map(Note, lines), *(Note(line, depth=1) for line in noted)]
    return notes or [Note("nothing was compiled")]


def _headline(name: str, blocks: Iterable[Sequence[OnTarget]]) -> str:
    """The totals of a target, over blocks that were recorded and compiled one by one."""
    made, failed = [], []
    for results in blocks:
        made += [result.compile_s for result in distinct(results) if result.error is None]
        failed += [result for result in results if result.error is not None]
    also = f", {len(failed)} not compiled{_internal(failed)}" if failed else ""
    return f"On {name}: {plural(len(made), 'compile')} in {seconds(sum(made))}{also}"


def failures_on(name: str, failed: Sequence[OnTarget]) -> str:
    """How many programs were not compiled for a target, and for how many that is no refusal."""
    return f"{plural(len(failed), 'program')} not compiled for {name}{_internal(failed)}"


def _internal(failed: Sequence[OnTarget]) -> str:
    count = sum(result.is_internal_error for result in failed)
    errors = "an internal error" if count == 1 else "internal errors"
    return f" ({count} by {errors} of the compiler)" if count else ""


def distinct(results: Sequence[OnTarget]) -> list[OnTarget]:
    """The results in one block without repeated programs: each was compiled once."""
    pairs = zip(results, _are_repeated(results), strict=True)
    return [result for result, is_again in pairs if not is_again]


def _are_repeated(results: Iterable[OnTarget]) -> list[bool]:
    """For each result, whether its program came before.

    By fingerprint and not by identity, which is lost on the way to a file or another process.
    """
    seen: set[tuple[str, str]] = set()
    repeated = []
    for result in results:
        key = (result.target, result.fingerprint)
        repeated.append(key in seen)
        if result.fingerprint:
            seen.add(key)
    return repeated


def _table(found: Sequence[tuple[Compile, OnTarget]]) -> Table:
    """A row for each program; of many, cheap operations outside of jit are summed up."""
    is_estimated = any(result.estimated_s is not None for _, result in found)
    names = ("compile", "memory", *(("estimate",) if is_estimated else ()))
    rows: list[Row] = []
    summed_up = []
    repeated = _are_repeated(result for _, result in found)
    for (compiled, result), is_again in zip(found, repeated, strict=True):
        if len(found) > _FEW and compiled.eager and not _note(result):
            summed_up.append(result)
            continue
        cells: list[Cell] = [Seconds(result.compile_s), Bytes(result.memory_bytes)]
        cells += [Seconds(result.estimated_s)] if is_estimated else []
        if result.error is not None:
            cells = [""] * len(names)
        is_same = is_again and result.error is None
        note = "; ".join(filter(None, ("the same program" if is_same else "", _note(result))))
        rows.append((name_of(compiled), arguments_of(compiled), *cells, note))
    columns = words("function") + long_words("arguments") + figures(*names) + long_words("note")
    return Table(columns, rows, _summed_up(summed_up))


def _summed_up(results: Sequence[OnTarget]) -> str:
    """A line about operations that have no row."""
    if not results:
        return ""
    took = seconds(sum(result.compile_s for result in distinct(results)))
    largest = max((result.memory_bytes or 0 for result in results), default=0)
    of_size = f", none larger than {size(largest)}" if largest else ""
    return f"… and {plural(len(results), 'operation')} outside of jit, {took} together{of_size}"


def _note(result: OnTarget) -> str:
    """A note to a result: that there is none, or what the program was compiled without."""
    if result.error is not None:
        return _NOT_COMPILED
    if result.fallback:
        return _FELL_BACK
    if not result.left_out:
        return ""
    first, *_ = result.left_out
    count = sum(each.count for each in result.left_out)
    what = first.kind if count == 1 else f"{count} callbacks, the first"
    return f"host's part left out: {what} at {first.call_site}"
