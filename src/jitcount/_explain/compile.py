"""`Compile`: all that is known of one compile, and how compiles are counted."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from jitcount._explain.caller import Caller
from jitcount._explain.causes import AnyCause
from jitcount._explain.summary import advice_of, with_codes
from jitcount._observe.call_site import NOWHERE, CallSite
from jitcount._profile.result import Line, Profile
from jitcount._stored import Stored
from jitcount._targets.result import OnTarget

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jitcount._loops.result import Loop
    from jitcount._observe.in_flight import InFlightCompile


class Argument(Stored, frozen=True):
    """One argument of a compiled call, as far as it is shown.

    >>> import jax, jitcount, numpy as np
    >>> with jitcount.record() as log:
    ...     _ = jax.jit(lambda params, x: x)({"w": 1.0, "b": 0.0}, np.zeros(3, np.float32))
    >>> [(a.name, a.leaves, a.type) for a in log.compiles[0].arguments]
    [('params', 2, ''), ('x', 1, 'float32[3]')]
    """

    name: str
    """What the function calls it."""

    leaves: int = 0
    """How many arrays are in it."""

    type: str = ""
    """Dtype and shape, where the argument is an array by itself."""

    is_static: bool = False
    """Whether its value is compiled in."""


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

    arguments: tuple[Argument, ...] = ()
    """The arguments by name, their arrays counted; empty for an operation outside of jit."""

    platform: str
    """The platform that it was compiled for: ``"cpu"``."""

    call_site: CallSite
    """The user's line that needed it: ``"train.py:42 in main"``."""

    via: CallSite = NOWHERE
    """The library's line that asked, ``"flax/linen/linear.py:271 in __call__"``; empty if none."""

    callers: tuple[Caller, ...] = ()
    """The user's lines on the way to it, outermost first; the last is mostly the call site."""

    thread: str = ""
    """The name of the thread that compiled it: ``"MainThread"``."""

    eager: bool
    """No jit of the user's: ``x + y``, ``jnp.ones(3)``."""

    ahead_of_time: bool = False
    """Asked for by ``.lower(...).compile()``, and not by a call."""

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
    """By target, what its compiler said; in `log.compiles`, complete when the block has ended."""

    profile: Profile | None = None
    """Where its time went, with ``record(profile=True)``."""

    def __post_init__(self) -> None:
        if min(self.trace_s, self.lower_s, self.compile_s) < 0:
            raise ValueError("a phase of less than no time")

    def __hash__(self) -> int:
        return hash((self.function, self.signature, self.call_site, self.started_at))

    @property
    def total_s(self) -> float:
        """Seconds of all three phases: tracing, lowering and XLA."""
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
        """What a notebook shows of a compile."""
        # A room on the right: people look at what they have in hand.
        from jitcount._show import html  # noqa: PLC0415
        from jitcount._show.log_table import one_compile  # noqa: PLC0415

        return html.render(one_compile(self))

    def reasons(self) -> list[str]:
        """Why, and what to do about it, a line each, as errors and failures show it."""
        because = [f"  because: {sentence}" for sentence in with_codes(self.causes)]
        return [*because, *(f"  → {advice}" for advice in advice_of(self.causes))]

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data, as JSON has it; `on` and `profile` if they are not empty."""
        facts: dict[str, Any] = {}
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if name == "causes":
                facts[name] = [_cause_to_dict(cause) for cause in value]
            elif name not in {"on", "profile"} or value:
                plain = list(value) if isinstance(value, tuple) else value
                facts[name] = msgspec.to_builtins(plain, enc_hook=str)
            if name == "call_site":
                facts |= {"file": value.file, "line": value.line}
            elif name == "compile_s":
                facts["total_s"] = self.total_s
        return facts


def _cause_to_dict(cause: AnyCause) -> dict[str, str]:
    facts = {name: str(getattr(cause, name)) for name in ("kind", "where", "before", "after")}
    return facts | {"code": cause.kind.code, "text": str(cause), "advice": cause.advice}


def count_compiles(
    compiles: Iterable[Compile | InFlightCompile], *, with_eager: bool = True
) -> dict[str, int]:
    """How often XLA compiled each function, in the order of their first compiles.

    What came from the persistent cache is not counted.
    """
    counts = Counter(
        compiled.function
        for compiled in compiles
        if not compiled.from_disk and (with_eager or not compiled.eager)
    )
    return dict(counts)
