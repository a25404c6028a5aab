"""Parts as Markdown: what is escaped, and how headings, notes and tables follow each other."""

import pytest

from jitcount._show.markdown import render
from jitcount._show.parts import (
    Count,
    Heading,
    Note,
    Part,
    Seconds,
    Table,
    Tone,
    Toned,
    figures,
    words,
)


def test_headings_notes_and_tables_are_apart_and_deeper_notes_are_a_list() -> None:
    table = Table(words("name") + figures("time"), [("step", Seconds(0.25)), ("f", Seconds(None))])
    below = Table(words("name"), [("g",)], left_out="… and 2 more")
    parts: list[Part] = [
        Heading("A"), Note("a"), Note("b", depth=1), Note("c", depth=2), table, below, Note("d"),
    ]  # fmt: skip
    assert render(parts) == (
        "### A\n\na\n\n- b\n  - c\n\n"
        "| name | time |\n| :--- | ---: |\n| step | 250 ms |\n| f |  |\n\n"
        "| name |\n| :--- |\n| g |\n\n… and 2 more\n\nd"
    )


def test_what_is_strong_or_wrong_is_bold_and_what_is_faint_is_not() -> None:
    rows = [(Toned("a", Tone.STRONG), Toned("b", Tone.DIFFERENT), Toned(Count(3), Tone.FAINT))]
    assert render([Table(words("x", "y", "z"), rows)]).splitlines()[-1] == "| **a** | **b** | 3 |"
    assert (
        render([Note("a", tone=Tone.DIFFERENT), Note("b", 1, Tone.DIFFERENT)]) == "**a**\n\n- **b**"
    )
    assert render([Note("", tone=Tone.DIFFERENT)]) == ""


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("float32[3]", r"float32\[3]"),
        ("<lambda>", r"\<lambda\>"),
        ("a|b", r"a\|b"),
        ("`__init__` *x* ~y~", r"\`\_\_init\_\_\` \*x\* \~y\~"),
        (r"\|", r"\\\|"),
        ("&lt; $x$", r"\&lt; \$x\$"),
        ("[a](javascript:b)", r"\[a](javascript:b)"),
        ("# no heading", r"\# no heading"),
        ("- no item", r"\- no item"),
        ("1. no item", r"1\. no item"),
        ("12) no item", r"12\) no item"),
        ("=", r"\="),
        ("3 compiles", "3 compiles"),
        ("→ pad", "→ pad"),
        ("a\n| forged |", r"a\\n\| forged \|"),
    ],
)
def test_what_has_a_meaning_in_markdown_has_none(text: str, escaped: str) -> None:
    assert render([Note(text)]) == escaped
