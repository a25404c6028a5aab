"""What is known of one compile."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jitcount.observe.values import signature_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jitcount.explain.cause import Cause
    from jitcount.observe.observation import Observation
    from jitcount.targets.result import OnTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class Compile:
    """One program that XLA compiled, or that came from the persistent cache instead, and why.

    >>> import jax, jitcount, numpy as np
    >>> with jitcount.record() as log:
    ...     _ = jax.jit(lambda x: 2 * x)(np.zeros(3, np.float32))
    >>> c = log.compiles[0]
    >>> c.function, c.signature, c.eager, c.from_disk
    ('<lambda>', ('float32[3]',), False, False)
    >>> print(c.causes[0])
    first call of <lambda>
    """

    function: str
    """The name of the compiled function: ``"sum"``."""

    signature: tuple[str, ...]
    """Dtype and shape of each array passed: ``("float32[3]", "weak int32[]")``."""

    platform: str
    """The platform that it was compiled for: ``"cpu"``."""

    call_site: str
    """The user's line that needed it: ``"train.py:42 in main"``."""

    eager: bool
    """No jit of the user's: ``x + y``, ``jnp.ones(3)``."""

    from_disk: bool
    """Served by the persistent compilation cache: not a compile."""

    trace_s: float
    """Seconds spent in turning Python into a jaxpr; 0.0 where an earlier trace served."""

    lower_s: float
    """Seconds spent in turning the jaxpr into StableHLO; 0.0 where an earlier lowering served."""

    compile_s: float
    """Seconds spent in XLA, or in reading the persistent cache."""

    causes: tuple[Cause, ...]
    """All that differs from the nearest earlier program of the same function."""

    on: Mapping[str, OnTarget] = field(default_factory=dict, hash=False)
    """By target, what its compiler said; complete when a block ``record(targets=...)`` ends."""

    @property
    def total_s(self) -> float:
        """Seconds of all three phases."""
        return self.trace_s + self.lower_s + self.compile_s

    @property
    def call(self) -> str:
        """The function with what it was given: ``"step(float32[3])"``."""
        return f"{self.function}({', '.join(self.signature)})"

    def reasons(self) -> list[str]:
        """Why, and what to do about it, a line each, as errors and failures show it."""
        lines = []
        for cause in self.causes:
            lines.append(f"  because: {cause}")
            if cause.advice:
                lines.append(f"  → {cause.advice}")
        return lines

    @classmethod
    def of(
        cls, seen: Observation, causes: tuple[Cause, ...], on: Mapping[str, OnTarget]
    ) -> Compile:
        """A compile as it was observed, written out, with its causes."""
        return cls(
            function=seen.function,
            signature=signature_of(seen.avals),
            platform=seen.platform,
            call_site=seen.call_site,
            eager=seen.eager,
            from_disk=seen.from_disk,
            trace_s=seen.trace_s,
            lower_s=seen.lower_s,
            compile_s=seen.compile_s,
            causes=causes,
            on=on,
        )
