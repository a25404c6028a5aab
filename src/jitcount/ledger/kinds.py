"""The kinds of our files; alone, so that they can be told apart without loading what is in them."""

from __future__ import annotations

from typing import Final

LEDGER: Final = "jitcount ledger"
BUDGET: Final = "jitcount budget"
TRACE: Final = "jitcount trace"
