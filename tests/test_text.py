"""Texts of others: one line each, without what moves a cursor, in letters that a stream has."""

import io
import unicodedata

import pytest

from jitcount._text import encode_safely, encoding_of, escape_control_chars

HOSTILE = (
    *map(chr, range(32)),  # ESC, BEL, CR, LF, TAB
    *map(chr, range(0x7F, 0xA0)),  # DEL, C1
    *"\u2028\u2029",  # separators of lines and paragraphs
    *"\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c",  # directions
    *"\u200b\u200c\u200d\u2060\ufeff\u00ad\U000e0041",  # of no width
    *"\ud800\udfff",  # halves of a character
)


@pytest.mark.parametrize("character", HOSTILE, ids=ascii)
def test_what_could_forge_a_line_is_shown_as_text(character: str) -> None:
    shown = escape_control_chars(f"a{character}b")
    assert shown == f"a{ascii(character)[1:-1]}b"
    assert shown.isprintable()


@pytest.mark.parametrize("text", ["größe", "大きさ", "e\u0301tat", "naïve\u00a0name", "ελ", "🚀"])
def test_letters_of_all_languages_stay(text: str) -> None:
    assert escape_control_chars(text) == text


@pytest.mark.thorough
def test_no_character_at_all_breaks_a_line() -> None:
    every = "".join(map(chr, range(0x110000)))
    shown = escape_control_chars(every)
    assert len(shown.splitlines()) == 1
    assert {unicodedata.category(c) for c in shown}.isdisjoint({"Cc", "Cf", "Cs", "Zl", "Zp"})


OURS = "─→×…–−µ≈✗·━"


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1", "cp437", "koi8-r", "no-such"])
def test_our_signs_become_ascii_where_a_stream_lacks_them(encoding: str) -> None:
    shown = encode_safely(f"{OURS} größe 大", encoding)
    known = "ascii" if encoding == "no-such" else encoding
    assert shown.encode(known).decode(known) == shown
    assert "\\u5927" in shown
    for sign, written in zip(
        OURS, ["-", "->", "x", "...", "-", "-", "u", "~", "!", "*", "-"], strict=True
    ):
        assert encode_safely(sign, encoding) in {sign, written}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "gb18030"])
def test_where_all_letters_are_there_nothing_is_changed(encoding: str) -> None:
    assert encode_safely(f"{OURS} größe 大", encoding) == f"{OURS} größe 大"


def test_a_stream_that_does_not_say_takes_all_letters() -> None:
    assert encoding_of(io.StringIO()) == encoding_of(None) == encoding_of(object()) == "utf-8"
