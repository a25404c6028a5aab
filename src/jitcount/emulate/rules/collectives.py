"""Operations between devices; with one device they are nothing, or nearly so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitcount.emulate.translating import NotKnownError, rule
from jitcount.emulate.writing import flat_values

if TYPE_CHECKING:
    from jitcount.emulate.hlo import Instruction
    from jitcount.emulate.translating import Translation
    from jitcount.emulate.writing import Values, Writer


@rule(
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "collective-permute",
    "all-to-all",
    "collective-broadcast",
    "ragged-all-to-all",
)
def _collective(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Values]
) -> Values:
    """Among one device everything is there already, and whole."""
    if translation.devices != 1:
        raise NotKnownError(f"{instruction.opcode} between {translation.devices} devices")
    return operands[0] if len(operands) == 1 else tuple(operands)


@rule("partition-id", "replica-id")
def _which(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Values]
) -> Values:
    if translation.devices != 1:
        raise NotKnownError(f"{instruction.opcode} among {translation.devices} devices")
    return writer.full(0, instruction.shape.of())


@rule("send", "recv", "infeed", "outfeed")
def _outside(
    translation: Translation, writer: Writer, instruction: Instruction, operands: list[Values]
) -> Values:
    flat_values(tuple(operands))
    raise NotKnownError(f"{instruction.opcode}, which speaks with the host")
