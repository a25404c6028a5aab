"""What a program depends on besides its function and arguments: the jit's options, JAX's settings.

Both are nearly always the same as for the program before, and take long to write out, so the last
ones are kept.
"""

from __future__ import annotations

import functools
import operator
import threading
from typing import TYPE_CHECKING, Any, TypeAlias

from jitcount._jax import options, settings
from jitcount._observe.statics import equal_token
from jitcount._observe.texts import text_of

if TYPE_CHECKING:
    from collections.abc import Mapping


class TokenisedDict:
    """A dict of names to short texts, with a token for each value that tells equal ones apart."""

    __slots__ = ("_hash", "by_name", "tokens")

    def __init__(self, by_name: dict[str, str], tokens: Mapping[str, object] | None = None) -> None:
        self.by_name = by_name
        self.tokens = by_name if tokens is None else tokens
        """A token for each value: two different values may have the same short text."""

        self._hash = hash(tuple(self.tokens.items()))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, TokenisedDict) and self.tokens == other.tokens)

    def __hash__(self) -> int:
        return self._hash


Options: TypeAlias = TokenisedDict
"""The options of a `jax.jit`."""


class Settings(TokenisedDict):
    """The settings that a program was compiled with."""

    __slots__ = ("of_jaxs_own", "set_for_a_block")

    def __init__(
        self,
        by_name: dict[str, str],
        set_for_a_block: frozenset[str] = frozenset(),
        of_jaxs_own: frozenset[str] = frozenset(),
        tokens: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(by_name, tokens)
        self.set_for_a_block = set_for_a_block
        self.of_jaxs_own = of_jaxs_own
        """Those that no user sets: JAX does, while it transforms."""


NO_OPTIONS = Options({})


def options_of(info: Any, beside: tuple[tuple[str, Any], ...] = ()) -> Options:
    """The options in JAX's record of a `jax.jit`, and those of the `jax.pmap` that made it."""
    kind: Any = type(info)
    values = options.option_values(info)
    try:
        written = _written_options(kind, values)
    except TypeError:  # one is not hashable
        written = _written_options.__wrapped__(kind, values)
    if not beside:
        return written
    texts = written.by_name | {name: text_of(value) for name, value in beside}
    tokens = {**written.tokens, **{name: equal_token(value) for name, value in beside}}
    return Options(texts, tokens)


@functools.lru_cache(maxsize=1024)
def _written_options(kind: Any, values: tuple[object, ...]) -> Options:
    named = dict(zip(options.option_names(kind), values, strict=True))
    texts = {name: text_of(value) for name, value in named.items()}
    unspecified = {name for name, text in texts.items() if options.UNSPECIFIED in text}
    tokens = {name: 0 if name in unspecified else equal_token(v) for name, v in named.items()}
    return Options(texts | dict.fromkeys(unspecified, "unspecified"), tokens)


class _Seen(threading.local):
    """The settings of a thread's last program."""

    values: tuple[object, ...] = ()
    settings = Settings({})


_seen = _Seen()


def settings_now() -> Settings:
    """The settings of this thread that are part of JAX's key."""
    values = settings.values()
    if len(values) != len(_seen.values) or any(map(operator.is_not, values, _seen.values)):
        _seen.values = values
        named = zip(settings.names(), values, strict=True)
        users = dict(settings.shown(*each) for each in named)
        texts = {name: text_of(value) for name, value in users.items()}
        tokens = {name: equal_token(value) for name, value in users.items()}
        blocks = frozenset(name for name in texts if settings.is_set_for_a_block(name))
        own = frozenset(name for name in texts if settings.is_jaxs_own(name, texts[name]))
        _seen.settings = Settings(texts, blocks, own, tokens)
    return _seen.settings
