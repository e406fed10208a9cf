"""What users stored is shown, and does nothing."""

import json

import pytest

from tests.unit.cli.records import HOSTILE, SEEN
from watchbill.cli.escape import visible, visible_json, visible_lines

INVISIBLE = ["\x00", "\x1b", "\x7f", "\x9b", "\xad", "\u200b", "\u202e", "\u2028", "\u2066", "\ufeff", "\U000e0041"]


@pytest.mark.parametrize("character", INVISIBLE)
def test_what_cannot_be_seen_is_written_out(character):
    assert visible(f"a{character}b").isprintable()
    assert visible(f"a{character}b") == f"a{character.encode('unicode_escape').decode()}b"


@pytest.mark.parametrize("text", ["", "plain [bold]text[/]", "Grüße, 東京", "naïve “quoted”", "🙂"])
def test_what_can_be_seen_stays_as_it_is(text):
    assert visible(text) == text


def test_a_hostile_text_is_one_harmless_line():
    assert visible(HOSTILE) == SEEN


def test_lines_stay_lines_and_tabs_become_spaces():
    assert visible_lines("a\n\tb\x1b\n\n") == ["a", "    b\\x1b"]


@pytest.mark.parametrize("character", [*INVISIBLE, "ü", "🙂"])
def test_json_means_the_same_after_it_is_made_harmless(character):
    written = json.dumps({f"k{character}": [f"v{character}"]}, ensure_ascii=False, indent=2)
    shown = visible_json(written)
    assert shown.replace("\n", "").isprintable()
    assert json.loads(shown) == json.loads(written)
