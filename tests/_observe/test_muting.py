import threading

import jax
import numpy as np
import pytest

import jitcount
from jitcount._observe.muting import is_muted, muted

X = np.ones(3, np.float32)


def test_what_is_compiled_in_a_muted_block_is_not_heard_and_not_refused() -> None:
    with jitcount.record() as log, jitcount.freeze():
        with muted():
            jax.jit(lambda x: 2 * x)(X)
        with pytest.raises(jitcount.RecompileError):
            jax.jit(lambda x: 3 * x)(X)
    assert log.compiles == ()


def test_muted_blocks_nest() -> None:
    with muted():
        with muted():
            assert is_muted()
        assert is_muted()
    assert not is_muted()


def test_an_exception_ends_a_muted_block() -> None:
    with pytest.raises(KeyError), muted():
        raise KeyError
    assert not is_muted()


def test_other_threads_are_heard() -> None:
    muted_there: list[bool] = []
    with muted():
        thread = threading.Thread(target=lambda: muted_there.append(is_muted()))
        thread.start()
        thread.join()
    assert muted_there == [False]
