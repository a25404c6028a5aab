"""Places in the arguments, as users write them: ``params['dense']['kernel']``."""

from __future__ import annotations

import re


def argument_in(place: str) -> str:
    """The argument that a place is in.

    >>> argument_in("params['a'].b"), argument_in("x")
    ('params', 'x')
    """
    return re.split(r"[\[.]", place, maxsplit=1)[0]
