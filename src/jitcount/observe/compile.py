"""What is known of one compile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Compile:
    """One program that XLA compiled, or that came from the persistent cache instead.

    >>> import jax, jitcount, numpy as np
    >>> with jitcount.record() as log:
    ...     _ = jax.jit(lambda x: 2 * x)(np.zeros(3, np.float32))
    >>> c = log.compiles[0]
    >>> c.function, c.signature, c.eager, c.from_disk
    ('<lambda>', ('float32[3]',), False, False)
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

    @property
    def total_s(self) -> float:
        """Seconds of all three phases."""
        return self.trace_s + self.lower_s + self.compile_s


def signature_of(avals: object) -> tuple[str, ...]:
    """Describe abstract values as a user would write them.

    >>> import jax, numpy as np
    >>> signature_of([jax.ShapeDtypeStruct((32, 511), np.float32)])
    ('float32[32,511]',)
    """
    return tuple(_describe(aval) for aval in avals)  # type: ignore[attr-defined]


def _describe(aval: Any) -> str:
    if not (hasattr(aval, "dtype") and hasattr(aval, "shape")):
        return str(aval)  # a token, say
    weak = "weak " if getattr(aval, "weak_type", False) else ""
    return f"{weak}{aval.dtype.name}[{','.join(map(str, aval.shape))}]"
