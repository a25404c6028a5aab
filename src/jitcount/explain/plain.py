"""A compile as plain data: texts, numbers, lists and dicts, for other tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from jitcount.explain.compile import Compile


def plain(compiled: Compile) -> dict[str, Any]:
    """All that is known of a compile, as JSON can hold it; what tools sort by comes first."""
    facts: dict[str, Any] = {
        "function": compiled.function,
        "signature": list(compiled.signature),
        "platform": compiled.platform,
        "call_site": str(compiled.call_site),
        "file": compiled.call_site.file,
        "line": compiled.call_site.line,
        "via": str(compiled.via),
        "eager": compiled.eager,
        "from_disk": compiled.from_disk,
        "started_at": compiled.started_at,
        "trace_s": compiled.trace_s,
        "lower_s": compiled.lower_s,
        "compile_s": compiled.compile_s,
        "total_s": compiled.total_s,
        "fingerprint": compiled.fingerprint,
        "operations": compiled.operations,
        "causes": [
            {
                "kind": str(cause.kind),
                "where": cause.where,
                "before": cause.before,
                "after": cause.after,
                "text": str(cause),
                "advice": cause.advice,
            }
            for cause in compiled.causes
        ],
    }
    for name in ("on", "profile"):  # there only where they were asked for
        if found := getattr(compiled, name):
            facts[name] = msgspec.to_builtins(found, enc_hook=str)
    return facts
