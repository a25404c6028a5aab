"""LogLines of a logger are read, and go on just when they would have gone without us."""

import logging
from collections.abc import Iterator

import pytest

from jitcount._observe.log_lines import LogLines


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
def lines(logger: logging.Logger, heard: list[str]) -> Iterator[LogLines]:
    lines = LogLines(logger.name, lambda: None, lambda line: heard.append(line.getMessage()))
    yield lines
    lines.subscribe(wanted=False)


def log_three(logger: logging.Logger) -> None:
    logger.debug("debug")
    logger.info("info")
    logger.warning("warning")


def test_all_lines_are_heard_and_only_those_go_on_that_would_have(
    lines: LogLines, logger: logging.Logger, heard: list[str], shown: list[str]
) -> None:
    lines.subscribe(wanted=True)
    log_three(logger)
    assert heard == ["debug", "info", "warning"]
    assert shown == ["warning"]


def test_a_level_of_the_loggers_own_counts(
    lines: LogLines, logger: logging.Logger, shown: list[str]
) -> None:
    logger.setLevel(logging.INFO)
    lines.subscribe(wanted=True)
    log_three(logger)
    assert shown == ["info", "warning"]


def test_nothing_is_heard_before_and_after(
    lines: LogLines, logger: logging.Logger, heard: list[str], shown: list[str]
) -> None:
    log_three(logger)
    lines.subscribe(wanted=True)
    lines.subscribe(wanted=False)
    log_three(logger)
    assert (heard, shown) == ([], ["warning", "warning"])


def test_hearing_twice_hears_each_line_once(
    lines: LogLines, logger: logging.Logger, heard: list[str]
) -> None:
    lines.subscribe(wanted=True)
    lines.subscribe(wanted=True)
    logger.warning("once")
    assert heard == ["once"]


def test_a_logger_is_left_as_it_was_found(lines: LogLines, logger: logging.Logger) -> None:
    logger.setLevel(logging.ERROR)
    before = dict(vars(logger), _cache={})
    lines.subscribe(wanted=True)
    lines.subscribe(wanted=True)
    assert (logger.level, logger.filters, logger.handlers) == (logging.ERROR, [], [])
    lines.subscribe(wanted=False)
    lines.subscribe(wanted=False)
    assert dict(vars(logger), _cache={}) == before


@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO, logging.ERROR])
def test_what_the_user_sets_while_lines_are_heard_holds_at_once_and_stays(
    lines: LogLines, logger: logging.Logger, heard: list[str], shown: list[str], level: int
) -> None:
    mine = Kept()
    lines.subscribe(wanted=True)
    logger.setLevel(level)
    logger.addHandler(mine)
    logger.addFilter(dropped := logging.Filter("another.logger"))
    log_three(logger)
    logger.removeFilter(dropped)
    logger.propagate = False
    log_three(logger)
    assert (heard, shown) == (["debug", "info", "warning"] * 2, [])
    assert mine.texts == [t for t in heard[:3] if logging.getLevelName(t.upper()) >= level]
    lines.subscribe(wanted=False)
    assert (logger.level, logger.handlers, logger.propagate) == (level, [mine], False)
    logger.removeHandler(mine)
    logger.propagate = True


def test_a_line_that_is_not_wanted_reaches_no_filter_of_the_users(
    lines: LogLines, logger: logging.Logger
) -> None:
    seen: list[str] = []

    def look(line: logging.LogRecord) -> bool:
        seen.append(line.getMessage())
        return True

    logger.addFilter(look)
    lines.subscribe(wanted=True)
    log_three(logger)
    logger.removeFilter(look)
    assert seen == ["warning"]


def test_one_who_hears_after_us_and_stays_longer_is_left_alone(
    lines: LogLines, logger: logging.Logger, heard: list[str], shown: list[str]
) -> None:
    lines.subscribe(wanted=True)
    ours = logger.handle
    theirs: list[str] = []

    def handle(line: logging.LogRecord) -> None:
        theirs.append(line.getMessage())
        ours(line)

    vars(logger)["handle"] = handle
    lines.subscribe(wanted=False)
    log_three(logger)
    assert (heard, shown, theirs) == ([], ["warning"], ["warning"])
    del vars(logger)["handle"]


def test_without_a_listener_no_line_is_made_but_it_is_told_that_one_was_asked_for(
    logger: logging.Logger, shown: list[str]
) -> None:
    asked: list[int] = []
    lines = LogLines(logger.name, lambda: asked.append(1))
    lines.subscribe(wanted=True)
    assert not logger.isEnabledFor(logging.DEBUG)
    log_three(logger)
    lines.subscribe(wanted=False)
    assert (len(asked), shown) == (4, ["warning"])
