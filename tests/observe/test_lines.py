"""Lines of a logger are read, and go on just when they would have gone without us."""

import logging
from collections.abc import Iterator

import pytest

from jitcount.observe.lines import Lines


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    parent, child = logging.getLogger("tests.lines"), logging.getLogger("tests.lines.child")
    parent.setLevel(logging.WARNING)
    parent.propagate = False
    yield child
    child.setLevel(logging.NOTSET)
    parent.handlers.clear()


@pytest.fixture
def shown(logger: logging.Logger) -> list[str]:
    """What reaches the user's handler."""
    handler = Kept()
    assert logger.parent is not None
    logger.parent.addHandler(handler)
    return handler.texts


@pytest.fixture
def heard() -> list[str]:
    return []


@pytest.fixture
def lines(logger: logging.Logger, heard: list[str]) -> Iterator[Lines]:
    lines = Lines(logger.name, lambda line: heard.append(line.getMessage()))
    yield lines
    lines.hear(wanted=False)


def log_three(logger: logging.Logger) -> None:
    logger.debug("debug")
    logger.info("info")
    logger.warning("warning")


def test_all_lines_are_heard_and_only_those_go_on_that_would_have(
    lines: Lines, logger: logging.Logger, heard: list[str], shown: list[str]
) -> None:
    lines.hear(wanted=True)
    log_three(logger)
    assert heard == ["debug", "info", "warning"]
    assert shown == ["warning"]


def test_a_level_of_the_loggers_own_counts(
    lines: Lines, logger: logging.Logger, shown: list[str]
) -> None:
    logger.setLevel(logging.INFO)
    lines.hear(wanted=True)
    log_three(logger)
    assert shown == ["info", "warning"]


def test_nothing_is_heard_before_and_after(
    lines: Lines, logger: logging.Logger, heard: list[str], shown: list[str]
) -> None:
    log_three(logger)
    lines.hear(wanted=True)
    lines.hear(wanted=False)
    log_three(logger)
    assert (heard, shown) == ([], ["warning", "warning"])


def test_hearing_twice_hears_each_line_once(
    lines: Lines, logger: logging.Logger, heard: list[str]
) -> None:
    lines.hear(wanted=True)
    lines.hear(wanted=True)
    logger.warning("once")
    assert heard == ["once"]


def test_a_logger_is_left_as_it_was_found(lines: Lines, logger: logging.Logger) -> None:
    logger.setLevel(logging.ERROR)
    lines.hear(wanted=True)
    lines.hear(wanted=True)
    lines.hear(wanted=False)
    lines.hear(wanted=False)
    assert (logger.level, logger.filters) == (logging.ERROR, [])
