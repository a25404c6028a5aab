"""The calls that the advice of a report is to jit."""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import TYPE_CHECKING

from jitcount._explain.fix import OUTSIDE_JIT
from jitcount._try_calls.jitted_call import JittedCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._explain.caller import Caller
    from jitcount._explain.fix import Fix


def jitted_calls(fixes: Sequence[Fix]) -> list[JittedCall]:
    """The calls that are to be jitted, in the order of the fixes, each once."""
    found = (_call_of(fix) for fix in fixes if fix.code == OUTSIDE_JIT)
    return list(dict.fromkeys(call for call in found if call is not None))


def _call_of(fix: Fix) -> JittedCall | None:
    """The call at the line of a fix; None where it is not known, or cannot be jitted.

    A line may have several, as ``model.init(jax.random.key(0), x)``: the costliest is meant.
    """
    costs: defaultdict[Caller, float] = defaultdict(float)
    for compiled in fix.compiles:
        for caller in compiled.callers:
            if caller.site == fix.call_site and caller.jitted:
                costs[caller] += compiled.total_s
    return _read(max(costs, key=costs.__getitem__)) if costs else None


def _read(caller: Caller) -> JittedCall | None:
    """A call as it was written down for people; None where it is in no file."""
    if not caller.site.file:
        return None
    wrapper, _, rest = caller.jitted.partition("(")
    file, line, site = caller.site.file, caller.site.line, str(caller.site)
    if rest.startswith("lambda"):
        return JittedCall(file, line, caller.calls, wrapper, site=site, in_lambda=caller.jitted)
    _, is_static, names = rest.rpartition(", static_argnames=")
    static = ast.literal_eval(names.removesuffix(")(...)")) if is_static else ()
    return JittedCall(file, line, caller.calls, wrapper, static, site)
