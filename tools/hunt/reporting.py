"""Keeps what was found: a small file for each find, which shows the fault by itself.

The file needs JAX and nothing else. It returns 1 while the program is wrong, so that a release or a
flag can be tried on it: that is also how the pass is found.
"""

from __future__ import annotations

import importlib.metadata
import textwrap
from typing import TYPE_CHECKING

from tools.hunt.program import source
from tools.hunt.worker import IMPORTS

if TYPE_CHECKING:
    from pathlib import Path

    from tools.hunt.hunting import Find

_COMPILED = "jax.jit(f)(*arguments)"
_ONE_BY_ONE = "with jax.disable_jit():\n    {} = f(*arguments)"


def release() -> str:
    """The installed releases, which the find is about."""
    jax, jaxlib = (importlib.metadata.version(name) for name in ("jax", "jaxlib"))
    return f"jax {jax}, jaxlib {jaxlib}"


def summary(find: Find) -> str:
    """What was found, in a line or some: what is wrong, and what is known of it."""
    ways = ("compiled", "operation by operation")
    way, other = ways if find.compiled else ways[::-1]
    lines = [f"{find.failure.kind}, {way}: {find.failure.text}", f"{other}: {find.other_way}"]
    if not find.comes_again:
        lines.append(
            "in a process of its own it was right: it may depend on threads or on the load"
        )
        return "\n".join(lines)
    lines += [f"right with XLA_FLAGS={flag}" for flag in find.cures] or ["no flag makes it right"]
    if find.known:
        lines.append(find.known)
    return "\n".join(lines)


def text(find: Find) -> str:
    """A program that shows the find: it returns 1 as long as the fault is there."""
    about = [f"Found by `nox -s hunt`: {release()}, CPU.", "", *_wrapped(find)]
    lines = ['"""' + "\n".join(about), '"""', "", "import sys", "", IMPORTS]
    lines += [source(find.program)]
    lines += ["arguments = [", *(f"    {one.source()}," for one in find.program.arguments), "]"]
    lines += [_run("found", compiled=find.compiled)]
    if find.failure.kind in {"crash", "hang", "error"}:
        lines += ['print("it ended, without an error:", jax.block_until_ready(found))']
    elif find.other_way == "right":
        lines += [
            _run("right", compiled=not find.compiled),
            "wrong = [int(np.sum(np.asarray(a) != np.asarray(b))) for a, b in zip(found, right)]",
            'print("wrong elements of each output:", wrong)',
            "sys.exit(1 if any(wrong) else 0)",
        ]
    elif find.failure.place is not None:
        output, index = find.failure.place
        lines += [
            f"element = int(np.asarray(found[{output}])[{index}])",
            f'print("should be {find.failure.expected}, and is", element)',
            f"sys.exit(1 if element != {find.failure.expected} else 0)",
        ]
    else:
        lines += ['print("shapes:", [one.shape for one in found])', "sys.exit(1)"]
    return "\n".join(lines) + "\n"


def _wrapped(find: Find) -> list[str]:
    return [
        part
        for line in summary(find).splitlines()
        for part in textwrap.wrap(line, 96, subsequent_indent="  ", break_on_hyphens=False)
    ]


def _run(name: str, *, compiled: bool) -> str:
    return f"{name} = {_COMPILED}" if compiled else _ONE_BY_ONE.format(name)


def file_of(find: Find, folder: Path) -> Path:
    """Where a find is kept: by its release, its kind and its number."""
    jaxlib = importlib.metadata.version("jaxlib")
    return folder / f"{find.failure.kind}_{jaxlib.replace('.', '_')}_{find.number}.py"


def keep(find: Find, folder: Path) -> Path:
    """Write the program of a find; returns its file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = file_of(find, folder)
    path.write_text(text(find), encoding="utf-8")
    return path
