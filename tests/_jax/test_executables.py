"""What one process has compiled runs in another, and nothing is printed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import pytest
from jaxlib import xla_client

from jitcount._jax import executables
from jitcount._jax.substituting import substituted

if TYPE_CHECKING:
    from jitcount._jax.substituting import Compilable

_NUMBER = 1_000_003
X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Seen:
    """A compile, as another process would have it, and what came of it."""

    def __init__(self) -> None:
        self.written = b""
        self.options = b""
        self.loaded: Any = None

    def substitute(self, compilable: Compilable) -> Any:
        text = _doubled(compilable)
        self.options = compilable.options
        devices = jax.devices("cpu")[:1]
        made = executables.compile_as(text.encode(), self.options, devices)
        self.written = executables.written_executable(made, self.options, devices)
        self.loaded = compilable.load(text, self.written)
        return self.loaded


def _doubled(compilable: Compilable, *, has_long_chains: bool = False) -> str:
    given, made = compilable.signature()
    return compilable.with_body(
        f"func.func public @main(%arg0: {given[0]}) -> ({made[0]}) {{\n"
        f"%sum = stablehlo.add %arg0, %arg0 : {made[0]}\n"
        f"func.return %sum : {made[0]}\n}}\n",
        has_long_chains=has_long_chains,
    )


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executables, "_quiet", [])


@pytest.mark.usefixtures("executables_travel")
def test_it_runs_in_place_of_the_original_and_says_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    seen = Seen()
    with substituted(seen.substitute, _NUMBER):
        made = jax.jit(lambda x: x * 5)(X)
        np.testing.assert_array_equal(made, X * 2)
    assert seen.loaded is not None
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("executables_travel")
def test_donated_arguments_are_used_up() -> None:
    with substituted(Seen().substitute, _NUMBER + 1):
        x = jax.device_put(X)
        np.testing.assert_array_equal(jax.jit(lambda x: x * 6, donate_argnums=0)(x), X * 2)
        assert x.is_deleted()


@pytest.mark.usefixtures("executables_travel")
@pytest.mark.skipif(len(jax.devices("cpu")) < 2, reason="one device only")
def test_it_runs_on_the_device_that_was_asked_for_not_on_that_of_the_compile() -> None:
    seen = Seen()
    with substituted(seen.substitute, _NUMBER + 2):
        x = jax.device_put(X, jax.devices("cpu")[1])
        made = jax.jit(lambda x: x * 7)(x)
    assert seen.loaded is not None
    np.testing.assert_array_equal(made, X * 2)
    assert made.devices() == {jax.devices("cpu")[1]}


def test_options_of_the_jit_are_kept() -> None:
    seen = Seen()
    options = {"xla_cpu_enable_fast_math": True, "xla_cpu_prefer_vector_width": 128}
    with substituted(seen.substitute, _NUMBER + 3):
        jax.jit(lambda x: x * 8, compiler_options=options)(X)
    assert b"xla_cpu_prefer_vector_width" in seen.options


def test_long_chains_have_options_that_this_release_knows() -> None:
    options = []

    def substitute(compilable: Compilable) -> Any:
        text = _doubled(compilable, has_long_chains=True)
        options.append(compilable.options)
        return compilable.compile(text)

    with substituted(substitute, _NUMBER + 5):
        np.testing.assert_array_equal(jax.jit(lambda x: x * 10)(X), X * 2)
    is_older = jax.__version_info__ < (0, 12)
    name = b"xla_cpu_use_fusion_emitters" if is_older else b"xla_disable_hlo_passes"
    assert name in options[0]


@pytest.mark.usefixtures("executables_travel")
def test_a_machine_that_seems_another_is_not_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    seen = Seen()
    with substituted(seen.substitute, _NUMBER + 4):
        jax.jit(lambda x: x * 9)(X)
    features = re.search(rb"\+[a-z][a-z0-9.-]+,\+[a-z]", seen.written)
    if features is None:
        pytest.skip("no features of this machine in what XLA writes")
    at = features.start() + 1
    other = seen.written[:at] + b"q" + seen.written[at + 1 :]
    (device, *_) = jax.devices("cpu")
    together = xla_client.DeviceList((device,))
    how = xla_client.CompileOptions.ParseFromString(seen.options)
    assert executables.is_loaded_quietly(device.client, seen.written, together, how)
    assert not executables.is_loaded_quietly(device.client, other, together, how)
    assert capfd.readouterr() == ("", "")


def test_what_cannot_be_written_or_read_is_none() -> None:
    class Own:
        def serialize(self) -> bytes:
            raise NotImplementedError

    devices = jax.devices("cpu")[:1]
    assert executables.written_executable(Own(), b"", devices) == b""
    assert executables.loaded_executable(devices[0].client, b"nonsense", None, None) is None


def test_where_it_is_not_quiet_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executables, "_quiet", [False])
    seen = Seen()
    with substituted(seen.substitute, _NUMBER + 5):
        np.testing.assert_array_equal(jax.jit(lambda x: x * 10)(X), X * 10)
    assert (seen.written, seen.loaded) == (b"", None)
