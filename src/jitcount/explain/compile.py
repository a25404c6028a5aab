"""What is known of one compile."""

from __future__ import annotations

import msgspec

from jitcount.explain.causes import AnyCause
from jitcount.explain.summing import advice_of, sentences
from jitcount.observe.call_site import NOWHERE, CallSite
from jitcount.profile.result import Line, Loop, Profile
from jitcount.targets.result import OnTarget


class Compile(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
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

    call_site: CallSite
    """The user's line that needed it: ``"train.py:42 in main"``."""

    via: CallSite = NOWHERE
    """The library's line that asked, ``"flax/linen/linear.py:271 in __call__"``; empty if none."""

    eager: bool
    """No jit of the user's: ``x + y``, ``jnp.ones(3)``."""

    from_disk: bool
    """Served by the persistent compilation cache: not a compile."""

    started_at: float = 0.0
    """When its first phase began, in seconds since the epoch."""

    trace_s: float
    """Seconds spent in turning Python into a jaxpr; 0.0 where an earlier trace served."""

    lower_s: float
    """Seconds spent in turning the jaxpr into StableHLO; 0.0 where an earlier lowering served."""

    compile_s: float
    """Seconds spent in XLA, or in reading the persistent cache."""

    fingerprint: str = ""
    """The same for the same program, in every process and on every host; empty if not read."""

    operations: int = 0
    """How many operations XLA was handed: the same in every run."""

    causes: tuple[AnyCause, ...]
    """All that differs from the nearest earlier program of the same function."""

    on: dict[str, OnTarget] = {}
    """By target, what its compiler said; complete when a block ``record(targets=...)`` ends."""

    profile: Profile | None = None
    """Where its time went, with ``record(profile=True)``."""

    def __post_init__(self) -> None:
        if min(self.trace_s, self.lower_s, self.compile_s) < 0:
            raise ValueError("a phase of less than no time")

    def __hash__(self) -> int:
        return hash((self.function, self.signature, self.call_site, self.started_at))

    @property
    def total_s(self) -> float:
        """Seconds of all three phases."""
        return self.trace_s + self.lower_s + self.compile_s

    @property
    def lines(self) -> tuple[Line, ...]:
        """With a profile, the user's lines and what each costs, most first."""
        return self.profile.lines if self.profile is not None else ()

    @property
    def loops(self) -> tuple[Loop, ...]:
        """With a profile, the loops that were unrolled."""
        return self.profile.loops if self.profile is not None else ()

    @property
    def call(self) -> str:
        """The function with what it was given: ``"step(float32[3])"``."""
        return f"{self.function}({', '.join(self.signature)})"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        # A room on the right: people look at what they have in hand.
        from jitcount.show import html  # noqa: PLC0415
        from jitcount.show.one_compile import one_compile  # noqa: PLC0415

        return html.render(one_compile(self))

    def reasons(self) -> list[str]:
        """Why, and what to do about it, a line each, as errors and failures show it."""
        because = [f"  because: {sentence}" for sentence in sentences(self.causes)]
        return [*because, *(f"  → {advice}" for advice in advice_of(self.causes))]
