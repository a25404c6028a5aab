"""Finds the pass of XLA that makes a program wrong, by leaving passes out.

Each try is a process of its own, because XLA reads its flags once. Only those passes are tried that
change the program: XLA writes a file after each of them. They are left out in groups, which are
halved as long as the program is right without one of the halves.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

DISABLE = "--xla_disable_hlo_passes="

# Without the passes that lay memory out no program is right: they are nobody's fault alone.
_NEEDED = frozenset({"layout-assignment", "copy-insertion"})

# The backend's own optimiser, which is no pass of XLA's.
_OTHERS = ("--xla_backend_optimization_level=0",)

_SECONDS_EACH = 60.0
_SECONDS_IN_ALL = 180.0


def run_with(path: Path, flags: str, python: str = sys.executable) -> bool:
    """Whether the program in a file, which returns 1 when it is wrong, is right with some flags."""
    platform = os.environ.get("JAX_PLATFORMS", "cpu")
    env = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": platform}
    try:
        done = subprocess.run(  # noqa: S603
            [python, str(path)], env=env, capture_output=True, check=False, timeout=_SECONDS_EACH
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


@dataclass
class Bisection:
    """Looks for flags that make the program in a file right.

    Attributes:
        path: a program that returns 1 when it is wrong, and 0 when it is right.
        run: runs it with flags; returns whether it is right.
        until: when to give up, by `time.monotonic`.
    """

    path: Path
    run: Callable[[Path, str], bool] = run_with
    until: float = field(default_factory=lambda: time.monotonic() + _SECONDS_IN_ALL)

    def cures(self, first: Iterable[str] = ()) -> tuple[str, ...]:
        """The flags with which the program is right: some that are tried first, then one pass."""
        flags = [flag for flag in dict.fromkeys(first) if self._is_right(flag)]
        passes = [name for name in self.passes() if name not in _NEEDED]
        found = self._one_of(passes)
        if found:
            flags.append(DISABLE + found)
        if not flags:
            flags = [flag for flag in _OTHERS if self._is_right(flag)]
        return tuple(dict.fromkeys(flags))

    def passes(self) -> list[str]:
        """The names of the passes that change the program, in their order."""
        with tempfile.TemporaryDirectory() as folder:
            self.run(self.path, f"--xla_dump_to={folder} --xla_dump_hlo_pass_re=.*")
            return passes_in(sorted(one.name for one in Path(folder).iterdir()))

    def _is_right(self, flags: str) -> bool:
        return time.monotonic() < self.until and self.run(self.path, flags)

    def _one_of(self, passes: Sequence[str]) -> str:
        """A pass without which the program is right; empty if no single one is known.

        A half can hold the guilty pass and another without which nothing works. So where neither
        half cures the program, the halves of both are tried.
        """
        groups = [list(passes)] if passes else []
        while groups:
            group = groups.pop(0)
            if len(group) == 1:
                if self._is_right(DISABLE + group[0]):
                    return group[0]
                continue
            middle = len(group) // 2
            halves = [group[:middle], group[middle:]]
            cured = [half for half in halves if self._is_right(DISABLE + ",".join(half))]
            if cured and len(cured[0]) == 1:
                return cured[0][0]
            # Only the half that cures is followed; if its cure needs two passes, none is named.
            groups = [cured[0]] if cured else [*groups, *(half for half in halves if len(half) > 1)]
        return ""


def passes_in(files: Sequence[str]) -> list[str]:
    """The passes after which XLA wrote files for a function ``f``.

    >>> passes_in(["module_0004.jit_f.0003.simplification.after_algsimp.before_dce.txt"])
    ['algsimp']
    """
    of_f = [name for name in files if re.match(r"module_\d+\.jit_f\.", name)]
    found = [re.search(r"\.after_([\w-]+?)\.before_.*\.txt$", name) for name in of_f]
    names = [match.group(1) for match in found if match]
    return list(dict.fromkeys(name for name in names if not name.startswith("pipeline")))
