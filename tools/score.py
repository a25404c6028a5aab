"""How often the cause is right: jitcount's and JAX's own explanation, over the catalogue.

``python -m tools.score`` prints the table; ``--json FILE`` keeps the score, and
``--join FILE...`` prints the kept scores of several JAX releases side by side.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import jax

from jitcount._show.parts import Count, Note, Part, Row, Table, figures, words
from jitcount._show.terminal import render
from tools.catalogue import CATALOGUE
from tools.cause_case import CauseCase, causes_found, is_right, run_cause_case

if TYPE_CHECKING:
    from collections.abc import Iterator

# What JAX's explanation must hold to count as right, read kindly: it must name the kind of change
# and, for an array, the argument.
_JAX_SAYS = {
    "first-call": r"never seen function(?!.*same line)",
    "shape": r"(at {where}\b|input types)",
    "dtype": r"at {where}\b",
    "weak-type": r"at {where}\b.*weak_type",
    "static-argument": r"[Ss]tatic",
    "call-convention": r"tuple of length|keyword|kwarg",
    "pytree": r"pytree",
    "new-function": r"same line",
    "transform": r"vmap|grad|jvp|transpose|batch",
    "device": r"device|sharding",
    "sharding": r"sharding",
    "config": r"context|config",
    "jit-options": r"donat|option|[Ss]tatic",
    "caches-cleared": r"clear|evict",
}

# As in a kept score.
_EXPLAINERS = ("jitcount", "jax")


class _Lines(logging.Handler):
    """Collects what JAX logs."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def is_jax_right(case: CauseCase) -> bool:
    """Whether JAX's own explanation of the last compile names its causes."""
    said = [line for line in _jax_explains(case) if _is_about(line, case.function)]
    if len(case.causes) > 1:
        said = said[1:]  # the first explains the first call
    return any(_names_all(line, case) for line in said)


def _jax_explains(case: CauseCase) -> list[str]:
    jax.clear_caches()
    handler = _Lines()
    before = jax.config.values["jax_explain_cache_misses"]
    jax.config.update("jax_explain_cache_misses", True)  # noqa: FBT003
    try:
        # JAX 0.9 fails while it explains a `cond` outside of jit: then it is not right.
        with _instead_of_jaxs_handlers(handler), contextlib.suppress(ValueError):
            case.program()
    finally:
        jax.config.update("jax_explain_cache_misses", before)
    return handler.lines


@contextlib.contextmanager
def _instead_of_jaxs_handlers(handler: logging.Handler) -> Iterator[None]:
    """Let JAX log to a handler and nowhere else."""
    logger = logging.getLogger("jax")
    found = (logger.handlers, logger.propagate)
    logger.handlers, logger.propagate = [handler], False
    try:
        yield
    finally:
        logger.handlers, logger.propagate = found


def _is_about(line: str, function: str) -> bool:
    name = re.escape(function)
    return "MISS" in line and bool(re.search(rf"(for |\s){name} (defined|id=)", line))


def _names_all(line: str, case: CauseCase) -> bool:
    # Without the places: they have names of this suite in them.
    line = re.sub(r"defined at \S+", "", line.partition("\n")[2])
    for cause in case.causes[-1]:
        kind, _, where = cause.partition(" ")
        pattern = _JAX_SAYS[kind].format(where=re.escape(where))
        if not re.search(pattern, line, re.DOTALL):
            return False
    return True


def score() -> dict[str, dict[str, bool]]:
    """Of each case that can run here: whether jitcount is right, and whether JAX is."""
    found = {}
    for case in CATALOGUE:
        if jax.device_count() >= case.devices:
            ours = is_right(case, causes_found(run_cause_case(case)))
            found[case.id] = {"jitcount": ours, "jax": is_jax_right(case)}
    return found


def score_table(found: dict[str, dict[str, bool]]) -> list[Part]:
    """Each case with both answers, and the sums."""
    rows: list[Row] = [
        (name, *("right" if right[who] else "–" for who in _EXPLAINERS))
        for name, right in found.items()
    ]
    ours, theirs = _sums(found)
    note = Note(f"right, of {len(found)}: jitcount {ours}, JAX {theirs}")
    return [Table(words("recompile", "jitcount", "JAX"), rows), note]


def releases_table(kept: dict[str, dict[str, dict[str, bool]]]) -> list[Part]:
    """The sums of several releases."""
    rows: list[Row] = [
        (release, Count(len(found)), *map(Count, _sums(found))) for release, found in kept.items()
    ]
    columns = words("JAX") + figures("recompiles") + words("jitcount is right", "JAX is right")
    return [Table(columns, rows)]


def _sums(found: dict[str, dict[str, bool]]) -> list[int]:
    return [sum(right[who] for right in found.values()) for who in _EXPLAINERS]


def main(arguments: list[str] | None = None) -> int:
    """Print the score; 1 where jitcount is not right."""
    parser = argparse.ArgumentParser(prog="python -m tools.score")
    parser.add_argument("--json", type=Path, help="keep the score in this file")
    parser.add_argument("--join", type=Path, nargs="+", help="print kept scores side by side")
    asked = parser.parse_args(arguments)
    if asked.join:
        loaded = [json.loads(path.read_text()) for path in asked.join]
        kept = {one["jax"]: one["score"] for one in loaded}
        print(render(releases_table(kept)))
        found = {
            f"{release} {name}": right for release in kept for name, right in kept[release].items()
        }
    else:
        found = score()
        print(render(score_table(found)))
        if asked.json:
            asked.json.write_text(json.dumps({"jax": jax.__version__, "score": found}, indent=1))
    return 0 if all(right["jitcount"] for right in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
