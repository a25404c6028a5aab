"""Hunts for miscompiles: ``python -m tools.hunt [MINUTES [SEED]]``.

Prints what it finds, and keeps a program for each find. Returns 1 if one of them is not recognised
as one that was reported in public.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from tools.hunt.hunting import SECONDS_EACH, Find, Hunter
from tools.hunt.passes import Bisection, run_with
from tools.hunt.recognising import Finds, recognised, reported
from tools.hunt.reporting import keep, release, summary
from tools.hunt.worker import Worker


def main(arguments: list[str] | None = None) -> int:
    """Hunt for some minutes; returns 1 if something new was found."""
    parser = argparse.ArgumentParser(prog="python -m tools.hunt", description=main.__doc__)
    parser.add_argument("minutes", nargs="?", type=float, default=60.0, help="how long; 60")
    parser.add_argument("seed", nargs="?", type=int, default=today(), help="which; today's date")
    parser.add_argument("--folder", type=Path, default=Path("results/hunt"), help="for the finds")
    parser.add_argument("--finds", type=int, default=50, help="end after so many; 50")
    asked = parser.parse_args(arguments)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    start = time.monotonic()
    print(f"{release()}: seed {asked.seed}, {asked.minutes:g} minutes", flush=True)
    with Worker(SECONDS_EACH) as worker, closing(Finds()) as finds:
        hunter = Hunter(worker, finds.has)
        for small in hunter.hunt(asked.seed, start + 60 * asked.minutes):
            find, path = explained(small, asked.folder / f"seed-{asked.seed}")
            finds.all.append(find)
            after = f"after {time.monotonic() - start:.0f} s and {hunter.tried:,} programs"
            print(f"\n{path}, {after}\n{summary(find)}", flush=True)
            if len(finds.all) >= asked.finds:
                break
    new = [find for find in finds.all if find.comes_again and not find.known]
    print(
        f"\n{hunter.tried:,} programs in {(time.monotonic() - start) / 60:.0f} minutes: "
        f"{len(finds.all)} kinds of fault, {len(new)} of them not recognised; "
        f"{hunter.again} more programs were wrong in the same ways"
    )
    return 1 if new else 0


def today() -> int:
    """A seed for each day, so that every week's hunt tries other programs."""
    return int(datetime.now(UTC).strftime("%Y%m%d"))


def explained(find: Find, folder: Path) -> tuple[Find, Path]:
    """The find with the flags that cure it and the report that covers it, and where it is kept."""
    path = keep(find, folder)
    if run_with(path, ""):
        find = replace(find, comes_again=False)
        return find, keep(find, folder)
    reports = reported()
    cures = Bisection(path).cures(one.cured_by for one in reports if one.cured_by)
    find = replace(find, cures=cures)
    find = replace(find, known=recognised(find, reports))
    return find, keep(find, folder)


if __name__ == "__main__":
    sys.exit(main())
