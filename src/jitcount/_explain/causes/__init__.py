"""The causes of a compile: a class for each, which holds the facts and says them in words.

What changed is kept as it is (shapes, names, texts), so that a log, a ledger and a table can count
and sort it. The sentence and the advice are made of these facts when they are asked for. A class
also says how far apart its difference puts two programs, and whether it holds values of the user's.
"""

from __future__ import annotations

from typing import TypeAlias

from jitcount._explain.causes.arguments import ArgumentCause
from jitcount._explain.causes.arrays import ArrayCause
from jitcount._explain.causes.cause import Cause, Kind
from jitcount._explain.causes.functions import FunctionCause
from jitcount._explain.causes.structure import StructureCause

AnyCause: TypeAlias = FunctionCause | ArrayCause | ArgumentCause | StructureCause
"""Every cause that a compile can have and a ledger can hold."""

__all__ = ["AnyCause", "Cause", "Kind"]
