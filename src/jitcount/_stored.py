"""The base of what a ledger stores."""

from __future__ import annotations

import msgspec


class Stored(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """Facts that go into a file as they are, and are read back strictly."""
