"""`jitcount.compare`: files of ledgers side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jitcount.ledger import comparison
from jitcount.ledger.ledger import read_ledger

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from jitcount.ledger.compared import Comparison


def compare(*ledgers: str | os.PathLike[str]) -> Comparison:
    """Compare the ledgers in these files, from whichever machines, as ``jitcount compare`` does.

    Printed, it is what the command shows; in a notebook, tables; ``to_dict()`` is plain data.

    >>> import jitcount, pathlib, tempfile
    >>> from jitcount.ledger.environment import environment
    >>> from jitcount.ledger.ledger import Ledger, write_ledger
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in "one.json", "two.json":
    ...     write_ledger(folder / name, Ledger(environment=environment(), cases={}))
    >>> jitcount.compare(folder / "one.json", folder / "two.json").differences
    []

    Raises:
        jitcount.ledger.files.FileError: a file cannot be read, or is no ledger of this release.
    """
    paths = [Path(ledger) for ledger in ledgers]
    named = zip(_names(paths), paths, strict=True)
    return comparison.compare({name: read_ledger(path) for name, path in named})


def _names(paths: Sequence[Path]) -> list[str]:
    """Short names that tell the files apart: stems, or paths where stems are alike.

    >>> _names([Path("a/cpu.json"), Path("a/tpu.json")])
    ['cpu', 'tpu']
    >>> _names([Path("a/cpu.json"), Path("b/cpu.json"), Path("a/cpu.json")])
    ['a/cpu.json', 'b/cpu.json', 'a/cpu.json (3)']
    """
    stems = [path.stem for path in paths]
    names = stems if len(set(stems)) == len(stems) else [str(path) for path in paths]
    return [
        name if name not in names[:place] else f"{name} ({place + 1})"
        for place, name in enumerate(names)
    ]
