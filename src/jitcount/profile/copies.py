"""What JAX's name stacks say: which transformation made a copy of a line, and what it calls."""

from __future__ import annotations

import re

BACKWARD = "backward pass"
RECOMPUTED = "recomputed for the backward pass"
UNDER_VMAP = "under vmap"

_INNER = re.compile(r"\bjit\(([\w<>.]+)\)")


def copy_in(name_stack: str) -> str:
    """Which copy of a line an operation belongs to; empty for the line as it was written.

    >>> copy_in("jit(step)/vmap(transpose(jvp()))/mul"), copy_in("jit(step)/jvp()/mul")
    ('backward pass, under vmap', '')
    """
    if "rematted_computation" in name_stack or "remat(" in name_stack:
        kind = RECOMPUTED
    elif "transpose(" in name_stack:
        kind = BACKWARD
    else:
        kind = ""
    under = UNDER_VMAP if "vmap(" in name_stack else ""
    return ", ".join(filter(None, (kind, under)))


def called_in(name_stack: str) -> str:
    """The innermost jitted function that an operation is in; its own name where there is none.

    >>> called_in("jit(step)/jvp(jit(sort))/sort"), called_in("jit(step)/add")
    ('sort', 'add')
    """
    inner = _INNER.findall(name_stack)[1:]
    return inner[-1].lstrip("_") if inner else name_stack.rpartition("/")[2]
