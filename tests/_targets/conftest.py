from collections.abc import Iterator
from pathlib import Path

import pytest

from jitcount._targets import compilers, process
from jitcount._targets.compilers import Compilers
from tests.helpers import FAKE_COMPILER


@pytest.fixture
def fake_command() -> list[str]:
    """How a compiler is started that misbehaves on demand."""
    return list(FAKE_COMPILER)


def _compilers_for_a_while() -> Iterator[Compilers]:
    made = Compilers()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compilers, "_compilers", made)
        yield made
    made.close()


@pytest.fixture
def own_compilers() -> Iterator[Compilers]:
    """Compilers of the test's own, ended with it."""
    yield from _compilers_for_a_while()


@pytest.fixture(scope="module")
def shared_compilers() -> Iterator[Compilers]:
    """One set of compilers for a file: that they serve many blocks is part of what is tested."""
    yield from _compilers_for_a_while()


@pytest.fixture
def fake_compilers(
    own_compilers: Compilers,
    fake_command: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Compilers:
    """The target "cpu" is that compiler."""
    monkeypatch.setattr(process, "command", lambda: fake_command)
    monkeypatch.chdir(tmp_path)
    return own_compilers
