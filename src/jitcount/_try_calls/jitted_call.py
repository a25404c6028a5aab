"""`JittedCall`: a call in a program, and the jit that it might have."""

from __future__ import annotations

from dataclasses import dataclass

WRAPPERS = ("jax.jit", "nnx.jit", "eqx.filter_jit")


@dataclass(frozen=True, slots=True)
class JittedCall:
    """A call in a program, and the jit that it might have.

    >>> print(JittedCall("/home/me/train.py", 35, "model.init", static_argnames=("train",)))
    jax.jit(model.init, static_argnames=('train',))(...)
    """

    file: str
    """Where the file is, absolute."""

    line: int
    calls: str
    """What is called, as it is written there: ``"model.init"``; a long text may end with "…"."""

    wrapper: str = "jax.jit"
    """The jit that takes its arguments, one of `WRAPPERS`."""

    static_argnames: tuple[str, ...] = ()
    site: str = ""
    """The line, as people read it: ``"train.py:35 in main"``."""

    in_lambda: str = ""
    """The whole call, where what is jitted is a lambda of the arrays alone."""

    def __post_init__(self) -> None:
        if self.wrapper not in WRAPPERS:
            raise ValueError(f"{self.wrapper!r} is no jit; there are {', '.join(WRAPPERS)}")
        if self.static_argnames and self.wrapper == "eqx.filter_jit":
            raise ValueError("eqx.filter_jit takes no static_argnames")

    def __str__(self) -> str:
        if self.in_lambda:
            return self.in_lambda
        named = f", static_argnames={self.static_argnames!r}" if self.static_argnames else ""
        return f"{self.wrapper}({self.calls}{named})(...)"

    def is_text(self, text: str) -> bool:
        """Whether the source of what is called is this one's.

        >>> JittedCall("/home/me/train.py", 35, "build(a, lo…").is_text("build(a,  long)")
        True
        """
        shown = " ".join(text.split())
        if self.calls.endswith("…"):
            return shown.startswith(self.calls[:-1])
        return shown == self.calls
