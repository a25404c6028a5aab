"""What one run found, kept as a file: where it ran, and what each case or test compiled."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from jitcount.ledger.environment import environment
from jitcount.ledger.files import write_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from jitcount.explain.compile import Compile

KIND = "jitcount ledger"
SCHEMA = 1

Entry = dict[str, Any]


def entries(compiles: Iterable[Compile]) -> list[Entry]:
    """Compiles as plain data, which travels between processes and into a file."""
    return [dataclasses.asdict(compiled) for compiled in compiles]


def write_ledger(path: Path, cases: Mapping[str, list[Entry]]) -> None:
    """Write the ledger of a run, by case."""
    content = {
        "kind": KIND,
        "schema": SCHEMA,
        "environment": dataclasses.asdict(environment()),
        "cases": {name: {"compiles": compiles} for name, compiles in sorted(cases.items())},
    }
    write_json(path, content)
