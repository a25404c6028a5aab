"""What ``JITCOUNT=1`` does in any Python process: waits for JAX, then counts until the end.

Python calls `start` whenever it starts, because of a line in `jitcount.pth`, which checks the
variable first, or since 3.15 in `jitcount.start`, which cannot. So there is little in this file,
and the rest is imported once JAX is. JAX itself is not imported: a program that never uses it is
left alone. Whatever is wrong with jitcount, the program runs.
"""

from __future__ import annotations

import os
import sys

_ON = ("1", "true", "yes", "on")
_OFF = ("", "0", "false", "no", "off")

_is_started = False
_summaries = []  # type: ignore[var-annotated]  # one, once the process has imported JAX


def start() -> None:
    """Wait for JAX if ``JITCOUNT`` says so; once, however often Python calls this."""
    global _is_started  # noqa: PLW0603 (a process has one start)
    asked = os.environ.get("JITCOUNT", "").strip().lower()
    if _is_started or asked in _OFF:
        return
    _is_started = True
    if asked not in _ON:
        _write(f"JITCOUNT is {asked!r}; it can be 1 or 0 (true or false, yes or no, on or off)")
        return
    try:
        import atexit  # noqa: PLC0415 (only who asks pays for it)

        from jitcount._after_jax import after_import_of_jax  # noqa: PLC0415

        after_import_of_jax(_count)
        atexit.register(_show)  # before all others, so that it is called after them
    except Exception as error:  # noqa: BLE001 (a damaged installation, most likely)
        _write(f"could not count: {type(error).__name__}: {error}")


def _count() -> None:
    if "jitcount._cli.run" in sys.modules:  # it counts by itself
        return
    try:
        from jitcount._cli.summary import Summary  # noqa: PLC0415 (it imports JAX)

        _summaries.append(Summary())
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 (the user's import must not fail)
        _write(f"could not count: {type(error).__name__}: {error}")


def _show() -> None:
    for summary in _summaries:
        summary.show()


def _write(text: str) -> None:
    if sys.stderr is not None:
        try:
            sys.stderr.write(f"jitcount: {text}\n")
            sys.stderr.flush()
        except Exception:  # noqa: BLE001, S110 (then nobody reads it)
            pass
