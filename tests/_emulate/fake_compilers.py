"""Compilers that answer what a test says: no process is started, and programs are three times x."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import numpy as np
import pytest

from jitcount._emulate import as_if, emulator
from jitcount._emulate.emulator import BytesCache
from jitcount._targets import installed
from jitcount._targets.compilers import Compilers
from jitcount._targets.protocol import Answer, BuildExecutable
from tests._emulate.cases import module, parameters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jitcount._targets.names import Target
    from jitcount._targets.protocol import Task

X = np.arange(3, dtype=np.float32)
NOT_ASKED = Answer(error="the compiler of a test")
THREE_TIMES = module(
    f"{parameters(X)}\n%t = f32[] constant(3)\n%b = f32[3]{{0}} broadcast(%t), dimensions={{}}\n"
    "ROOT %m = f32[3]{0} multiply(%p0, %b)"
)


class FakeCompilers:
    """What the target's compiler says, and what the CPU's."""

    def __init__(self) -> None:
        self.there = Answer(block=THREE_TIMES.encode())
        self.here = Answer()
        self.asked: list[str] = []

    def answer(self, target: Target, task: Task, module: bytes) -> Answer:
        self.asked.append(target.name)
        if isinstance(task, BuildExecutable) and self.here.error is None:
            return Answer(block=self.executable(task, module))
        return self.here if isinstance(task, BuildExecutable) else self.there

    @staticmethod
    def executable(task: BuildExecutable, module: bytes) -> bytes:
        del task, module
        return b""

    def say(self, hlo: str) -> None:
        self.there = Answer(block=hlo.encode())


@contextlib.contextmanager
def fake_compilers() -> Iterator[FakeCompilers]:
    """Let all blocks in this one ask such compilers."""
    made = FakeCompilers()

    def ask(_: Compilers, target: Target, task: Task, module: bytes, timeout: float) -> Answer:
        del timeout
        return made.answer(target, task, module)

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(Compilers, "ask", ask)
        monkeypatch.setattr(Compilers, "submit", lambda _, job: job.on_result(NOT_ASKED))
        monkeypatch.setattr(Compilers, "get_ready", lambda *_: None)
        monkeypatch.setattr(emulator, "_programs", BytesCache(1 << 20, lambda made: len(made.hlo)))
        monkeypatch.setattr(emulator, "_executables", BytesCache(1 << 20, len))
        monkeypatch.setattr(as_if, "require_installed", lambda _: None)
        monkeypatch.setattr(installed, "require_installed", lambda _: None)
        yield made
