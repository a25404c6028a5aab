"""Tables of targets: which there are, and what their compilers said of each program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount.show.log_table import name_of, signature_of
from jitcount.show.text import render, seconds, table, times

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jitcount.explain.compile import Compile
    from jitcount.show.table import Table
    from jitcount.targets.names import Target
    from jitcount.targets.result import OnTarget

# A refusal in a table; the whole text is in the log and in the ledger.
_REFUSAL_COLUMNS = 60


def targets_table(
    rows: Sequence[tuple[Target, bool]], commands: Sequence[str] = (), columns: int | None = None
) -> str:
    """All targets, each with whether it is installed, and the commands for those that are not."""
    shown = table("target", "chip", "smallest", "installed")
    for target, is_installed in rows:
        chip, installed = target.chip, "yes" if is_installed else "no"
        shown.add_row(target.name, chip.description, chip.smallest, installed)
    note = "With a size: tpu:v5e:16x16, cuda:h100:8; without, as large as a program needs."
    return render(shown, "", note, *commands, columns=columns)


def target_tables(compiles: Sequence[Compile], columns: int | None = None) -> str:
    """For each target, what its compiler said of each program; nothing without targets."""
    names = list(dict.fromkeys(name for compiled in compiles for name in compiled.on))
    parts: list[str | Table] = []
    for name in names:
        found = [(compiled, compiled.on[name]) for compiled in compiles if name in compiled.on]
        parts += ["", _headline(name, [result for _, result in found]), "", _rows(found)]
    return render(*parts[1:], columns=columns) if parts else ""


def targets_summary(found: Mapping[str, Sequence[Compile]]) -> str:
    """For each target, how much its compiler made of all tests, and what it refused."""
    totals: dict[str, list[OnTarget]] = {}
    refused = []
    for test, compiles in found.items():
        for compiled in compiles:
            for name, result in compiled.on.items():
                totals.setdefault(name, []).append(result)
                if result.error is not None:
                    call = f"{compiled.function}({signature_of(compiled.signature)})"
                    refused.append(f"  {name}, {test}: {call}: {shortened(result.error)}")
    lines = [_headline(name, results) for name, results in totals.items()]
    return "\n".join([*lines, *refused]) or "nothing was compiled"


def _headline(name: str, results: Sequence[OnTarget]) -> str:
    # A program that came twice was compiled once: the results are the same object.
    made = {id(r): r for r in results if r.error is None}.values()
    refused = sum(result.error is not None for result in results)
    also = f", {refused} not compiled" if refused else ""
    total = seconds(sum(result.compile_s for result in made))
    return f"On {name}: {times(len(made), 'compile')} in {total}{also}"


def _rows(found: Sequence[tuple[Compile, OnTarget]]) -> Table:
    is_estimated = any(result.estimated_s is not None for _, result in found)
    figures = ("compile", "memory", *(("estimate",) if is_estimated else ()))
    rows = table("function", "signature", *figures, "note", right=figures)
    first: dict[int, None] = {}
    for compiled, result in found:
        is_again = id(result) in first
        first[id(result)] = None
        cells = [name_of(compiled), signature_of(compiled.signature)]
        if result.error is not None:
            cells += ["", "", ""] if is_estimated else ["", ""]
            cells.append(shortened(result.error))
        else:
            cells += [seconds(result.compile_s), size(result.memory_bytes)]
            if is_estimated:
                cells.append("" if result.estimated_s is None else seconds(result.estimated_s))
            cells.append("the same program" if is_again else "")
        rows.add_row(*cells)
    return rows


def shortened(error: str) -> str:
    r"""A refusal in a line.

    >>> shortened("UNIMPLEMENTED: no F64\nand more")
    'UNIMPLEMENTED: no F64'
    """
    line = error.splitlines()[0]
    return line if len(line) <= _REFUSAL_COLUMNS else f"{line[: _REFUSAL_COLUMNS - 1]}…"


def size(number: int | None) -> str:
    """Bytes in the unit that reads best.

    >>> size(12), size(36864), size(16935682048), size(None)
    ('12 B', '36 KiB', '15.8 GiB', '')
    """
    if number is None:
        return ""
    value = float(number)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.3g} {unit}"
        value /= 1024
    return f"{value:.3g} GiB"
