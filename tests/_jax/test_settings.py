"""The settings in JAX's cache key."""

import jax

from jitcount._jax import settings


def test_the_settings_in_the_key_are_named_and_read() -> None:
    def in_force() -> dict[str, object]:
        return dict(zip(settings.names(), settings.values(), strict=True))

    before = in_force()
    with jax.default_matmul_precision("float32"):
        changed = in_force()
        assert settings.is_set_for_a_block("jax_default_matmul_precision")
    assert not settings.is_set_for_a_block("jax_default_matmul_precision")
    different = {name for name in before if before[name] is not changed[name]}
    assert different == {"jax_default_matmul_precision"}
    assert {"jax_enable_x64", "jax_default_device", "jax_numpy_rank_promotion"} <= set(before)


def test_x64_is_read() -> None:
    assert settings.is_x64() is bool(jax.config.values["jax_enable_x64"])


def test_the_settings_of_a_compile_are_plain_values() -> None:
    found = settings.compile_settings()
    assert found["jax_disable_most_optimizations"] is False
    assert {type(value) for value in found.values()} <= {bool, int, float, str}
