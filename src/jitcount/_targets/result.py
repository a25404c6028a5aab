"""What a target's compiler said of one program."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Self

import msgspec

from jitcount._observe.call_site import CallSite
from jitcount._profile.result import Line, Profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jitcount._targets.protocol import Answer, WithoutTriton

# A first line of a compiler's may quote an instruction of many thousand letters.
_LONGEST_LINE = 300
_LONGEST_SENTENCE = 160
_MOST_SENTENCES = 4


def first_line(error: str) -> str:
    r"""The first line of what a compiler said; where that is only a code, with the next.

    >>> first_line("UNIMPLEMENTED: \nno such convolution\n\nThere must be: ...")
    'UNIMPLEMENTED: no such convolution'
    """
    first, *rest = [line.strip() for line in error.splitlines() if line.strip()] or [error]
    return f"{first} {rest[0]}" if rest and first.endswith(":") else first


def refusal(error: str) -> str:
    r"""Why a compiler refused, in whole sentences; only a sentence that quotes a program is cut.

    >>> refusal("UNIMPLEMENTED: no F64\nand more")
    'UNIMPLEMENTED: no F64'
    >>> long = f"no room for %a = f32[8]{{0}} {80 * 'add(b, c) '}. It has 16.00M, and needs 30.00M."
    >>> refusal(long)
    'no room for %a = f32[8]{0}… It has 16.00M, and needs 30.00M.'
    """
    line = " ".join(first_line(error).split())
    if len(line) <= _LONGEST_LINE:
        return line
    sentences = re.split(r"(?<=\.)\s+(?=[A-Z])", line)
    return " ".join(map(_without_program, sentences[:_MOST_SENTENCES]))


def _without_program(sentence: str) -> str:
    """A sentence; of a long one what comes before an instruction's operands, or its first words."""
    if len(sentence) <= _LONGEST_SENTENCE:
        return sentence
    found = re.match(r".*?%\S+ = \S+", sentence)
    kept = found[0] if found else sentence
    if len(kept) > _LONGEST_SENTENCE:
        kept = kept[:_LONGEST_SENTENCE].rpartition(" ")[0] or kept[:_LONGEST_SENTENCE]
    return f"{kept}…"


_INTERNAL = ("INTERNAL:", "UNKNOWN:", "the compiler was ended by", "the compiler ended with")


def is_internal(error: str) -> bool:
    """Whether a compiler failed by a fault of its own, and did not refuse the program.

    >>> is_internal("INTERNAL: no tile fits"), is_internal("UNIMPLEMENTED: no F64")
    (True, False)
    """
    return error.startswith(_INTERNAL)


def failure(error: str) -> str:
    """What became of a program that was not compiled: the refusal, or that it is none.

    >>> failure("INTERNAL: no tile fits")
    'an internal error of the compiler, not a refusal: no tile fits'
    """
    if not is_internal(error):
        return refusal(error)
    said = refusal(error).removeprefix("INTERNAL: ").removeprefix("UNKNOWN: ")
    return f"an internal error of the compiler, not a refusal: {said}"


def what_target_said(target: str, error: str) -> str:
    """In a sentence of its own, why a target's compiler did not compile a program."""
    if is_internal(error):
        return f"{target} fails at it by {failure(error)}"
    return f"{target} refuses it: {error}"


def fallback_sentence(without: WithoutTriton | None, products: Sequence[CallSite]) -> str:
    """What a program was compiled without, and why; empty if it was compiled as it is.

    >>> fallback_sentence(None, [])
    ''
    """
    if without is None:
        return ""
    number = without.product
    is_known = number is not None and number < len(products)
    where = f"the product at {products[number]}" if number is not None and is_known else "a product"
    return (
        f"compiled without Triton kernels: the one picked for {where} fails, "
        "and a device would try others"
    )


class LeftOut(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Calls of Python from inside a program, which no target can make."""

    kind: str
    """Which: ``"pure_callback"``, ``"io_callback"``, ``"debug_callback"``, ``"debug_print"``."""

    call_site: CallSite
    """The user's line that they come from."""

    count: int = 1
    """How many there are from that line."""


class OnTarget(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One program, compiled for a target, or refused; sizes are in bytes and for one device.

    A figure that the compiler does not report is None. With ``record(targets=["tpu:v5e"])``, it is
    what `Compile.on` holds:

    >>> import jitcount
    >>> on = {"tpu:v5e": jitcount.OnTarget(target="tpu:v5e", argument_bytes=96, output_bytes=32)}
    >>> on["tpu:v5e"].error, on["tpu:v5e"].memory_bytes
    (None, 128)
    """

    target: str
    """The target's name: ``"tpu:v5e"``."""

    fingerprint: str = ""
    """The same for the same program: what came twice was compiled once; empty where none was
    sent.
    """

    compile_s: float = 0.0
    """Seconds that the compiler took, to the end or until it refused."""

    error: str | None = None
    """Why it was not compiled: what the compiler said, or why it was not asked."""

    argument_bytes: int | None = None
    output_bytes: int | None = None
    aliased_bytes: int | None = None
    """The part of the outputs that lies in donated arguments."""

    temporary_bytes: int | None = None
    code_bytes: int | None = None
    flops: float | None = None
    estimated_s: float | None = None
    """The compiler's own estimate of how long one run takes."""

    hlo: str | None = None
    """The optimised program, where it was asked for."""

    fallback: str = ""
    """What it was compiled without, where the compiler's own choice fails only because there is no
    device to try it on; empty for almost all.
    """

    left_out: tuple[LeftOut, ...] = ()
    """The callbacks in it. The compiler saw where the program hands its values to the host and
    takes the results; what the host does in between is in none of the figures.
    """

    profile: Profile | None = None
    """Where its time went, with ``record(profile=True)``."""

    @classmethod
    def from_answer(cls, target: str, fingerprint: str, answer: Answer) -> Self:
        """What the process of a target's compiler has answered to a `CompileModule`."""
        return cls(
            target=target,
            fingerprint=fingerprint,
            compile_s=answer.compile_s,
            error=answer.error,
            hlo=answer.block.decode(errors="replace") or None,
            profile=answer.profile,
            **msgspec.structs.asdict(answer.figures),
        )

    @property
    def is_internal_error(self) -> bool:
        """Whether it was not compiled by a fault of the compiler's own: that is no refusal."""
        return self.error is not None and is_internal(self.error)

    @property
    def lines(self) -> tuple[Line, ...]:
        """With a profile, the user's lines and what each costs this compiler, most first."""
        return self.profile.lines if self.profile is not None else ()

    @property
    def memory_bytes(self) -> int | None:
        """All that a run needs on one device."""
        parts = (self.argument_bytes, self.output_bytes, self.temporary_bytes, self.code_bytes)
        known = [part for part in parts if part is not None]
        return sum(known) - (self.aliased_bytes or 0) if known else None
