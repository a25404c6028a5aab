"""Parts as HTML: what is escaped, and that nothing but elements with styles is in it."""

import re

from msgspec.structs import replace

from jitcount._explain.causes.arrays import Shape
from jitcount._observe.array_type import ArrayType
from jitcount._observe.call_site import CallSite
from jitcount._show.html import render
from jitcount._show.parts import (
    Heading,
    Note,
    Seconds,
    Table,
    Tone,
    Toned,
    figures,
    long_words,
    words,
)
from tests.helpers import STEP_COMPILED

CELL = "padding:.15em .8em .15em 0;vertical-align:top;background:none"
HEAD = "border-bottom:1px solid currentColor;font-weight:600"


def test_a_table_with_its_sides_and_tones() -> None:
    columns = words("name") + figures("time") + long_words("why")
    row = ("f", Toned(Seconds(0.25), Tone.FAINT), Toned("x", Tone.DIFFERENT))
    assert render([Table(columns, [row], left_out="… and 1 more")]).splitlines() == [
        '<div class="jitcount">',
        '<table style="border-collapse:collapse;margin:.4em 0;color:inherit;font-size:inherit">',
        (
            f'<thead><tr><th style="{CELL};text-align:left;{HEAD}">name</th>'
            f'<th style="{CELL};text-align:right;{HEAD}">time</th>'
            f'<th style="{CELL};text-align:left;{HEAD}">why</th></tr></thead>'
        ),
        "<tbody>",
        (
            f'<tr><td style="{CELL};text-align:left;white-space:nowrap">f</td>'
            f'<td style="{CELL};text-align:right;white-space:nowrap;opacity:.6">250 ms</td>'
            f'<td style="{CELL};text-align:left;color:#d9434e">x</td></tr>'
        ),
        "</tbody></table>",
        "<div>… and 1 more</div>",
        "</div>",
    ]


def test_headings_and_notes() -> None:
    assert render([Heading("A"), Note("b"), Note("c", depth=2, tone=Tone.DIFFERENT)]) == (
        '<div class="jitcount">\n'
        '<div style="font-weight:600;margin-top:.4em">A</div>\n'
        "<div>b</div>\n"
        '<div style="color:#d9434e;padding-left:3em">c</div>\n'
        "</div>"
    )


HOSTILE = "<script>alert(1)</script><img src=x onerror='a'>\"&"


def test_nothing_that_a_name_holds_is_an_element() -> None:
    shown = render([Heading(HOSTILE), Note(HOSTILE), Table(words(HOSTILE), [(HOSTILE,)], HOSTILE)])
    assert set(re.findall(r"<(\w+)", shown)) == {"div", "table", "thead", "tbody", "tr", "th", "td"}
    assert shown.count("&lt;script&gt;alert(1)") == 5
    assert "'" not in shown


def test_a_compile_says_what_it_was_where_and_why() -> None:
    cause = Shape("x", ArrayType("float32", (3,)), ArrayType("float32", (4,)))
    hostile = replace(
        STEP_COMPILED, function="<b>", causes=(cause,), via=CallSite("flax/linear.py:2 in call")
    )
    text = re.sub(r"<[^>]+>", "", hostile._repr_html_()).strip()
    assert text.splitlines() == [
        "&lt;b&gt;(float32[3])",
        "at train.py:42 in main, asked for by flax/linear.py:2 in call",
        "100 ms on cpu (trace 0, lower 0, XLA 100 ms)",
        "axis 0 of x went from 3 to 4: float32[3] became float32[4]",
        "→ pad axis 0 of x to a few lengths with jitcount.bucketed, and mask the padding",
    ]
