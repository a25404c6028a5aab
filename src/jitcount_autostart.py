"""What ``JITCOUNT=1`` does in any Python process: waits for JAX, then counts until the end.

A child of ``jitcount run --as-if`` is told by another variable to compute as its parent does.

Python calls `start` whenever it starts, because of a line in `jitcount.pth`, which checks the
variables first, or since 3.15 in `jitcount.start`, which cannot. So there is little in this file,
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
    """Wait for JAX if the environment says so; once, however often Python calls this."""
    global _is_started  # noqa: PLW0603 (a process has one start)
    asked = os.environ.get("JITCOUNT", "").strip().lower()
    as_if = os.environ.get("JITCOUNT_AS_IF", "")
    if _is_started or (asked in _OFF and not as_if):
        return
    _is_started = True
    if as_if:
        _emulate(as_if)
    if asked in _OFF:
        return
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


def _emulate(as_if: str) -> None:
    """A child of ``jitcount run --as-if`` computes as its parent does."""
    try:
        from jitcount._after_jax import after_import_of_jax  # noqa: PLC0415
        from jitcount._targets.host import prefer_cpu  # noqa: PLC0415

        prefer_cpu()
        after_import_of_jax(lambda: _begin_emulating(as_if))
    except Exception as error:  # noqa: BLE001 (the same)
        _write(f"not as if on {as_if.split(maxsplit=1)[0]}: {type(error).__name__}: {error}")


def _begin_emulating(as_if: str) -> None:
    if "jitcount._cli.run" in sys.modules:  # it has a target of its own, or none
        return
    from jitcount._cli.children import begin_in_a_child  # noqa: PLC0415 (it imports JAX)

    begin_in_a_child(as_if)


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
