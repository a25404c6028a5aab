"""Changes at random, the same ones in every run: a number says which.

JITCOUNT_ATTACK=full   as many as ``nox -s attack`` makes; without it, a few
JITCOUNT_ATTACK_SEED   another seed; 1 by default
JITCOUNT_ATTACK_ONE    only the change of this number, as a failure names it
"""

from __future__ import annotations

import copy
import json
import os
import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

SEED = int(os.environ.get("JITCOUNT_ATTACK_SEED", "1"))
ONE = os.environ.get("JITCOUNT_ATTACK_ONE")
IS_FULL = os.environ.get("JITCOUNT_ATTACK") == "full"

ODD_TEXTS = (
    "", " ", "-", "--", "\n", "\r", "\t", "\x1b[2J", "\a", "\u202e", "\ufeff", "\udcff", "\xb2",
    "\u0663", "\xe9", "\U0001f4a5", "%s", "%n", "{}", "{0}", "[bold]", "[/", "\\", "'", '"',
    "$(true)", "..", "/", "NaN", "-1", "1e999",
    "x" * 300, "x/" * 3000, "None", "null", "sum", "float32", "exact", "0000c03f",
)  # fmt: skip
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 2**31, 2**63, -(2**70), 10**40, 0.5, -0.0, 1e308, float("nan"),
    float("inf"), [], {}, [None], [[]], {"": 0}, {"a": {"b": []}}, *ODD_TEXTS,
)  # fmt: skip


def numbers(full: int, few: int, chunks: int = 1) -> list[range]:
    """The numbers of the changes to make, in chunks for the workers."""
    if ONE is not None:
        return [range(int(ONE), int(ONE) + 1)]
    count, chunks = (full, chunks) if IS_FULL else (few, 1)
    return [range(count * n // chunks, count * (n + 1) // chunks) for n in range(chunks)]


def chance(what: str, number: int) -> random.Random:
    """Where the change of a number comes from; the same in every process."""
    return random.Random(f"{what} {SEED} {number}")  # noqa: S311 (it is to be repeated)


def called(what: str, number: int) -> str:
    """How a failure names its change."""
    repeat = f"JITCOUNT_ATTACK_SEED={SEED} JITCOUNT_ATTACK_ONE={number}"
    return f"{what} {number}; to repeat it: {repeat}"


def damaged(document: Any, source: random.Random) -> bytes:
    """A JSON document with some of its places changed, or some of its bytes."""
    if source.random() < 0.75:
        document = copy.deepcopy(document)
        for _ in range(source.choice((1, 1, 1, 2, 5))):
            _change(document, source)
        text = json.dumps(document, ensure_ascii=source.random() < 0.5)
        return text.encode("utf-8", "surrogatepass")
    return _damaged_bytes(json.dumps(document).encode(), source)


def _places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to everything in a JSON document."""
    keys: Sequence[Any] = ()
    if isinstance(tree, dict):
        keys = list(tree)
    elif isinstance(tree, list):
        keys = range(len(tree))
    return [p for key in keys for p in [(*path, key), *_places(tree[key], (*path, key))]]


def _change(tree: Any, source: random.Random) -> None:
    """Change one place: another value, another letter, nothing, twice, another name, deeper."""
    places = _places(tree)
    if not places:
        return
    # First a depth: else nearly all changes would be in the many small things at the bottom.
    depth = source.choice(sorted({len(place) for place in places}))
    *way, last = source.choice([place for place in places if len(place) == depth])
    for key in way:
        tree = tree[key]
    old = tree[last]
    kind = source.choice(
        ("value", "letter", "letter", "drop", "double", "rename", "wrap", "number")
    )
    if kind == "letter" and isinstance(old, str) and old:
        place = source.randrange(len(old))
        tree[last] = old[:place] + source.choice("0123456789abcdef\x1b\n ") + old[place + 1 :]
    elif kind == "drop":
        del tree[last]
    elif kind == "double" and isinstance(tree, list):
        tree.insert(source.randrange(len(tree) + 1), copy.deepcopy(old))
    elif kind == "rename" and isinstance(tree, dict):
        tree[source.choice((*ODD_TEXTS, *tree))] = tree.pop(last)
    elif kind == "wrap":
        for _ in range(source.choice((1, 2, 100))):
            old = [old]
        tree[last] = old
    elif kind == "number" and isinstance(old, int | float):
        tree[last] = source.choice((-old, old + 1, old * 1e300, old - 2**40, old / 3))
    else:
        tree[last] = copy.deepcopy(source.choice(ODD_VALUES))


def _damaged_bytes(content: bytes, source: random.Random) -> bytes:
    place, other = sorted(source.choices(range(len(content)), k=2))
    kind = source.choice(("cut", "flip", "slice", "twice", "insert", "prefix", "utf-16", "empty"))
    if kind == "flip":
        flipped = bytearray(content)
        for _ in range(source.choice((1, 1, 3, 50))):
            flipped[source.randrange(len(content))] ^= 1 << source.randrange(8)
        return bytes(flipped)
    return {
        "cut": content[:place],
        "slice": content[:place] + content[other:],
        "twice": content[:other] + content[place:],
        "insert": content[:place] + source.randbytes(source.choice((1, 8, 4096))) + content[place:],
        "prefix": source.choice((b"\xef\xbb\xbf", b"\x1f\x8b", b"\0", b"[" * 100_000)) + content,
        "utf-16": content.decode().encode("utf-16"),
        "empty": source.choice((b"", b"\n", b"null", b"[]", b"{}", b"0")),
    }[kind]


def mutated_line(lines: Sequence[Sequence[str]], source: random.Random) -> list[str]:
    """A command line with some of its words changed."""
    line = list(source.choice(lines))
    for _ in range(source.choice((1, 1, 2, 3))):
        place = source.randrange(len(line)) if line else 0
        kind = source.choice(("odd", "drop", "double", "swap", "insert", "glue", "cut", "other"))
        if kind == "odd" and line:
            line[place] = source.choice(ODD_TEXTS)
        elif kind == "drop" and line:
            del line[place]
        elif kind == "double" and line:
            line.insert(place, line[place])
        elif kind == "swap" and line:
            other = source.randrange(len(line))
            line[place], line[other] = line[other], line[place]
        elif kind == "glue" and line:
            line[place] += "=" + source.choice(ODD_TEXTS)
        elif kind == "cut" and line:
            line[place] = line[place][: source.randrange(len(line[place]) + 1)]
        elif kind == "other":
            line.insert(place, source.choice(source.choice(lines)))
        else:
            line.insert(place, source.choice(ODD_TEXTS))
    return line
