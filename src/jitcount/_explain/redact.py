"""Whether the environment asks that the user's values are left out; each cause knows how.

Left out are the texts of static arguments and static fields, the keys of dicts in them, the
parameters of eager operations and the compiler's options: see `Cause.redacted`. Names stay, and so
do the places in arguments that are not static.
"""

from __future__ import annotations

import os

VARIABLE = "JITCOUNT_REDACT"
"""The environment variable; it holds for all that is written out, errors of guards too."""


def is_redaction_requested() -> bool:
    """Whether the environment variable is set, and not to a word for "no"."""
    return os.environ.get(VARIABLE, "").lower() not in {"", "0", "false", "no", "off"}
