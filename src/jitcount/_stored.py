"""What a ledger stores: the base class of its parts, and call sites as plain data.

The same plain data goes to a target's worker process and comes back.
"""

from __future__ import annotations

from typing import Any

import msgspec

from jitcount._observe.call_site import CallSite


class Stored(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """A part of a ledger: it is written as it is, and read back strictly."""


class _Site(msgspec.Struct, forbid_unknown_fields=True):
    """A call site as plain data: msgspec would keep the text of it alone."""

    text: str
    file: str
    line: int
    function: str


def to_plain(value: Any) -> Any:
    """An `enc_hook` for msgspec: writes a call site with all of its parts."""
    if isinstance(value, CallSite):
        return _Site(str(value), value.file, value.line, value.function)
    raise NotImplementedError(f"{type(value).__name__} does not go into a file")


def from_plain(form: type, value: Any) -> Any:
    """A `dec_hook` for msgspec: reads a call site that `to_plain` has written."""
    if form is CallSite:
        site = msgspec.convert(value, _Site)
        return CallSite(site.text, site.file, site.line, site.function)
    raise NotImplementedError(f"{form.__name__} does not come from a file")
