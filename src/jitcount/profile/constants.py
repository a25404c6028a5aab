"""Arrays that a program has inside of it, and the time that XLA takes to compute with them.

What a function closes over becomes part of the program. XLA computes beforehand what follows from
constants alone: with large ones that takes long, and is done for each compile anew.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jitcount.observe.call_site import Sites
from jitcount.profile.origin import Origin
from jitcount.profile.places import sites_at
from jitcount.profile.result import Constant

if TYPE_CHECKING:
    from jitcount.profile.draft import Draft
    from jitcount.profile.lowered import Lowered
    from jitcount.profile.places import DeepStacks

# Smaller ones are everywhere, and cost nothing.
_LARGE_BYTES = 100_000

# A share of the compile that is worth a word.
_LONG = 0.05

_TENSOR = re.compile(r"tensor<((?:\d+x)*)([a-z]\w*?)(\d+)?>")
_NAMES = {"f": "float", "i": "int", "ui": "uint", "bf": "bfloat", "i1": "bool"}


def large_constants(program: Lowered, deep: DeepStacks) -> tuple[Constant, ...]:
    """The large constants of a program, largest first."""
    found = []
    for form, stack in program.constants:
        name, size = described(form)
        if size >= _LARGE_BYTES:
            site = sites_at(deep.whole(stack)).user
            found.append(Constant(call_site=site, type=name, bytes=size))
    return tuple(sorted(found, key=lambda each: -each.bytes))


def described(form: str) -> tuple[str, int]:
    """A type of MLIR's as people write it, and its size; nothing where it is not known.

    >>> described("tensor<300x1000xf32>"), described("tensor<8xi1>")
    (('float32[300,1000]', 1200000), ('bool[8]', 8))
    """
    match = _TENSOR.fullmatch(form)
    if match is None:
        inner = re.fullmatch(r"tensor<((?:\d+x)*)complex<f(\d+)>>", form)
        if inner is None:
            return form, 0
        shape, kind, bits = inner[1], "complex", 2 * int(inner[2])
    else:
        shape, bits = match[1], int(match[3] or 8)
        kind = _NAMES.get(match[2], match[2])
    sizes = [int(size) for size in shape.split("x") if size]
    count = 1
    for size in sizes:
        count *= size
    name = "bool" if (kind, bits) == ("int", 1) else f"{kind}{bits}"
    return f"{name}[{','.join(map(str, sizes))}]", count * max(bits, 8) // 8


def note_folding(draft: Draft) -> None:
    """Blame the folding of constants on the lines that brought the large ones, by their size."""
    account = draft.account
    if account is None or account.end <= account.begin:
        return
    seconds = sum(s for name, s in account.by_pass.items() if name.startswith("constant_folding"))
    if seconds < _LONG * (account.end - account.begin):
        return
    whole = sum(each.bytes for each in draft.constants)
    if not whole:
        draft.notes.append(
            f"constant folding took {seconds:.1f} s, and no large constant was found"
        )
        return
    for each in draft.constants:
        origin = Origin(Sites(each.call_site), calls="constant folding")
        draft.units[origin] = draft.units.get(origin, 0.0) + seconds * each.bytes / whole
