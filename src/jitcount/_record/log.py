"""The compiles of one block, in order, with the questions that people ask of them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from jitcount._explain.causes.cause import is_redaction_requested
from jitcount._explain.compile import count_compiles

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from jitcount._explain.compile import Compile
    from jitcount._observe.callers import CallerFrame
    from jitcount._observe.in_flight import InFlightCompile
    from jitcount._targets.session import Session, TargetResults


class CompileLog:
    """What was compiled; made by `jitcount.record`. Printed, it is a table for people.

    >>> import jax, jitcount, numpy as np
    >>> double = jax.jit(lambda x: 2 * x)
    >>> with jitcount.record() as log:
    ...     for length in 3, 4, 3:
    ...         _ = double(np.zeros(length, np.float32))
    >>> log.count("<lambda>"), log.count(), log.counts()
    (2, 2, {'<lambda>': 2})
    """

    def __init__(self, targets: Session | None = None, *, redact: bool = False) -> None:
        self.started_at = 0.0
        """When its block began, in seconds since the epoch; 0.0 without a block."""

        self.ended_at = 0.0
        """When its block ended, in seconds since the epoch; 0.0 while it is open."""

        self.outer: tuple[CallerFrame, ...] = ()
        """The user's lines that led to the block: what calls it cannot be jitted."""

        self._targets = targets
        self._redact = redact
        self._seen: list[tuple[InFlightCompile, TargetResults | None, bool]] = []
        """With the targets' results, and whether the user's values are left out: as it is asked
        for when the program is compiled, not when it is explained."""

        self._written: dict[int, Compile] = {}
        """By number, what was explained; with the results that there were then."""

    def add(self, observation: InFlightCompile) -> None:
        """Add one more compile; called from the thread that compiles."""
        results = self._targets.results_of(observation.lowered_program) if self._targets else None
        self._seen.append((observation, results, self._redact or is_redaction_requested()))

    def written(self, observation: InFlightCompile) -> Compile:
        """The compile that was added for an observation, explained."""
        seen = reversed(list(enumerate(self._seen)))
        number = next(number for number, (one, *_) in seen if one is observation)
        return self.compiles[number]

    @property
    def compiles(self) -> Sequence[Compile]:
        """All that XLA compiled, in order; what came from disk instead is marked `from_disk`.

        A compile does not change: asked for while a block with targets is open, it has the results
        that there are by then. After the block all of them have all, in the order of the targets.
        """
        if len(self._written) < len(self._seen):
            # Not before: it needs JAX, and a test may hold a log before it imports JAX.
            from jitcount._explain.explain import to_compile  # noqa: PLC0415
        for number in range(len(self._written), len(self._seen)):
            # A thread, or a finalizer, that is in here too writes out the same.
            seen, results, redact = self._seen[number]
            on = None if results is None else results.on
            written = to_compile(seen, on, redact=redact, outer=self.outer)
            self._written.setdefault(number, written)
        return tuple(self._with_results(number) for number in range(len(self._written)))

    def _with_results(self, number: int) -> Compile:
        compiled = self._written[number]
        if self._targets is None:
            return compiled
        results = self._seen[number][1]
        if results is not None and results.on is not compiled.on:
            compiled = msgspec.structs.replace(compiled, on=results.on)
            self._written[number] = compiled
        return compiled

    def count(self, function: str | None = None) -> int:
        """How often XLA compiled that function; without a name, how often it compiled at all."""
        counts = self.counts()
        return sum(counts.values()) if function is None else counts.get(function, 0)

    def counts(self) -> dict[str, int]:
        """How often XLA compiled each function, in the order of their first compiles."""
        return count_compiles(seen for seen, *_ in tuple(self._seen))  # none is explained for it

    @property
    def duration_s(self) -> float:
        """How many seconds of the clock the block took, or has taken so far."""
        return (self.ended_at or time.time()) - self.started_at if self.started_at else 0.0

    @property
    def total_s(self) -> float:
        """How many seconds XLA and JAX took for what is counted."""
        every = (seen for seen, *_ in tuple(self._seen) if not seen.from_disk)
        return sum(seen.trace_s + seen.lower_s + seen.compile_s for seen in every)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Plain data for other tools, a dict for each compile; all of it is as JSON has it.

        >>> import jax, jitcount, numpy as np
        >>> with jitcount.record() as log:
        ...     _ = jax.jit(lambda x: 2 * x)(np.zeros(3, np.float32))
        >>> [(found["function"], found["signature"]) for found in log.to_dicts()]
        [('<lambda>', ['float32[3]'])]
        """
        return [compiled.to_dict() for compiled in self.compiles]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a ledger, which `jitcount.load` reads and `jitcount.compare` compares.

        >>> import jax, jitcount, numpy as np, pathlib, tempfile
        >>> with jitcount.record() as log:
        ...     _ = jax.jit(lambda x: 2 * x)(np.zeros(3, np.float32))
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.json"
        >>> log.save(path)
        >>> jitcount.load(path).counts()
        {'<lambda>': 1}

        Raises:
            jitcount.LedgerError: it cannot be written, or another kind of file is at that path.
        """
        # A room on the right: people save what they have in hand.
        from jitcount._ledger.environment import environment_so_far  # noqa: PLC0415
        from jitcount._ledger.ledger import CaseEntry, Ledger, write_ledger  # noqa: PLC0415

        cases = {"log": CaseEntry(compiles=tuple(self.compiles))}
        ledger = Ledger(
            environment=environment_so_far(),
            started_at=self.started_at,
            ended_at=self.ended_at,
            cases=cases,
        )
        write_ledger(Path(path), ledger)

    def __repr__(self) -> str:
        return f"<CompileLog: {self.counts()}>"

    def __str__(self) -> str:
        # The one door to a room on the right: people print what they have in hand.
        from jitcount._show.log_table import log_table  # noqa: PLC0415
        from jitcount._show.terminal import render  # noqa: PLC0415

        return render(log_table(self.compiles, duration=self.duration_s))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from jitcount._show import html  # noqa: PLC0415
        from jitcount._show.log_table import log_table  # noqa: PLC0415

        return html.render(log_table(self.compiles, duration=self.duration_s))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: FBT001, ARG002 (IPython's)
        """What IPython shows in a terminal."""
        printer.text(str(self))
