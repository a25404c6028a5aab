"""Which releases of JAX get the cases of the known miscompiles wrong, as a table.

``python -m tools.museum --ledger FILE`` runs these cases with the JAX at hand, and keeps what it
found. ``python -m tools.museum FILE...`` shows the table of such files, and how it differs from
what `jitcount._miscompiles.known` says; ``python -m tools.museum --expected`` the latter.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from jitcount._ledger.findings import findings
from jitcount._ledger.ledger import read_ledger, write_ledger
from jitcount._miscompiles.known import KNOWN
from jitcount._suite.running import chosen, run_suite

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# All that were tried: every release since the oldest that is supported.
RELEASES = (
    *("0.7.1", "0.7.2", "0.8.0", "0.8.1", "0.8.2", "0.8.3", "0.9.0", "0.9.1", "0.9.2"),
    *("0.10.0", "0.10.1", "0.10.2", "0.11.0", "0.11.1", "0.11.2", "0.12.0", "0.12.0.1"),
)

WRONG, RIGHT, UNKNOWN = "✗", "·", "–"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases or show a table; returns 1 if a release is not as the table of known ones."""
    parser = argparse.ArgumentParser(prog="python -m tools.museum")
    parser.add_argument("--ledger", type=Path, metavar="FILE", help="run the cases, and keep them")
    parser.add_argument("--expected", action="store_true", help="the table of what is known")
    parser.add_argument("ledgers", nargs="*", type=Path, metavar="LEDGER", help="what was kept")
    asked = parser.parse_args(arguments)
    if asked.ledger:
        run = run_suite(chosen(cases()), after=lambda case, _: print(case.id, flush=True))
        write_ledger(asked.ledger, run)
        return 0
    expected = expected_standings(RELEASES)
    if asked.expected:
        print(table(expected))
        return 0
    found = dict(map(_standings, asked.ledgers))
    ordered = {
        release: {case: standings[case] for case in (*cases(), *standings) if case in standings}
        for release, standings in found.items()
    }
    print(table(ordered))
    differing = [
        f"JAX {release}, {case}: {standing} and not {expected[release][case]}"
        for release, standings in found.items()
        for case, standing in standings.items()
        if standing not in {UNKNOWN, expected[release][case]}
    ]
    print(*differing or ["as is known"], sep="\n")
    return 1 if differing else 0


def cases() -> list[str]:
    """The ids of the cases that some release is known to get wrong on a CPU."""
    patterns = [pattern for each in KNOWN if each.platform == "cpu" for pattern in each.cases]
    return list(dict.fromkeys(case.id for each in patterns for case in chosen([each])))


def expected_standings(releases: Iterable[str]) -> dict[str, dict[str, str]]:
    """By release and case, whether the case is known to be wrong there."""
    on_cpu = [each for each in KNOWN if each.platform == "cpu"]
    return {
        release: {
            case: WRONG
            if any(each.makes_wrong(case) and each.is_in(release) for each in on_cpu)
            else RIGHT
            for case in cases()
        }
        for release in releases
    }


def _standings(path: Path) -> tuple[str, dict[str, str]]:
    """The release of a ledger, and how each case stands in it."""
    kept = read_ledger(path)
    found = {}
    for case, entry in kept.cases.items():
        is_wrong = bool(findings(entry)) != bool(entry.known_wrong)
        found[case] = UNKNOWN if entry.unsupported else WRONG if is_wrong else RIGHT
    return kept.environment.jaxlib, found


def table(standings: Mapping[str, Mapping[str, str]]) -> str:
    """The table of cases by releases; the first line has the minor releases, the second the rest.

    >>> print(table({"0.7.1": {"a": "✗"}, "0.7.2": {"a": "✗"}, "0.12.0.1": {"a": "·"}}))
       0.7  0.12
       1 2  0.1
    a  ✗ ✗  ·
    """
    groups = [
        (minor, list(releases))
        for minor, releases in itertools.groupby(
            standings, lambda release: ".".join(release.split(".")[:2])
        )
    ]
    names = list(dict.fromkeys(case for each in standings.values() for case in each))
    width = max(map(len, names))
    lines: dict[str, list[str]] = {"minor": [], "patch": [], **{name: [] for name in names}}
    for minor, releases in groups:
        patches = [release.removeprefix(f"{minor}.") for release in releases]
        size = max(len(minor), len(" ".join(patches)))
        lines["minor"].append(minor.ljust(size))
        lines["patch"].append(" ".join(patches).ljust(size))
        for name in names:
            marks = [
                standings[release].get(name, UNKNOWN).ljust(len(patch))
                for release, patch in zip(releases, patches, strict=True)
            ]
            lines[name].append(" ".join(marks).ljust(size))
    firsts = {"minor": "", "patch": ""}
    return "\n".join(
        f"{firsts.get(name, name):{width}}  {'  '.join(cells)}".rstrip()
        for name, cells in lines.items()
    )


if __name__ == "__main__":
    sys.exit(main())
