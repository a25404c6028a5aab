"""Options of a jit and settings of JAX, written out once."""

import threading
from typing import Any, NamedTuple

import jax
import numpy as np

from jitcount._observe.surroundings import Options, Settings, options_of, settings_now
from jitcount._observe.texts import text_of
from tests.helpers import described

X = np.ones(3, np.float32)
PRECISION = "jax_default_matmul_precision"


def step(x: Any) -> Any:
    return 2 * x


def test_settings_are_written_out_once_while_nothing_changes() -> None:
    assert settings_now() is settings_now()


def test_a_setting_of_a_block_is_known_as_such() -> None:
    before = settings_now()
    with jax.default_matmul_precision("float32"):
        within = settings_now()
    after = settings_now()
    assert within.by_name[PRECISION] == "'float32'"
    assert PRECISION in within.set_for_a_block
    assert PRECISION not in before.set_for_a_block
    assert before == after != within


def test_a_setting_of_another_thread_is_not_ours() -> None:
    there: list[Settings] = []
    with jax.default_matmul_precision("float32"):
        thread = threading.Thread(target=lambda: there.append(settings_now()))
        thread.start()
        thread.join()
        assert there[0] != settings_now()
    assert there[0] == settings_now()


def test_the_axis_of_a_vmap_is_no_setting_of_the_users() -> None:
    seen: list[Settings] = []

    def inside(x: Any) -> Any:
        seen.append(settings_now())
        return x

    jax.vmap(inside)(X)
    assert seen[0] == settings_now()
    jax.vmap(inside, axis_name="batch")(X)
    before = settings_now().by_name
    changed = {name for name, text in seen[1].by_name.items() if text != before[name]}
    assert changed <= seen[1].of_jaxs_own


def test_equal_texts_are_equal_and_have_one_hash() -> None:
    one, two, other = Options({"a": "1"}), Options({"a": "1"}), Options({"a": "2"})
    assert one == two != other
    assert hash(one) == hash(two)
    assert one != "a"


def test_options_are_equal_where_two_jits_have_the_same() -> None:
    first = described(lambda: jax.jit(step)(X)).options
    jax.clear_caches()
    assert described(lambda: jax.jit(step)(X)).options == first
    jax.clear_caches()
    other = described(lambda: jax.jit(step, donate_argnums=0)(X)).options
    differ = {name for name in first.by_name if first.by_name[name] != other.by_name[name]}
    assert "donate_argnums" in differ
    assert differ <= {"donate_argnums", "donate_argnames"}


def test_what_the_user_did_not_specify_is_called_so() -> None:
    assert described(lambda: jax.jit(step)(X)).options.by_name["in_shardings"] == "unspecified"


def test_an_option_that_cannot_be_hashed_is_written_out_all_the_same() -> None:
    class Info(NamedTuple):
        static_argnums: tuple[int, ...]
        compiler_options_kvs: dict[str, bool]

    found = options_of(Info((1,), {"xla_a": True}))
    assert found.by_name == {"static_argnums": "(1,)", "compiler_options": "{'xla_a': True}"}


class Info(NamedTuple):
    """JAX's record of a jit, with two options."""

    compiler_options_kvs: tuple[tuple[str, bool], ...]
    inline: bool = False


def test_options_that_differ_where_their_text_is_cut_are_told_apart() -> None:
    given = tuple((f"option_{number}", True) for number in range(20))
    other = (*given[:-1], ("option_19", False))
    assert text_of(given) == text_of(other)
    assert options_of(Info(given)) != options_of(Info(other))
    assert options_of(Info(given)) == options_of(Info((*given,)))
