"""The characters that names must not have."""

import re

import pytest

from segdec.runtime.identifiers import SCHEMA_PATTERN, check_identifier

FORBIDDEN = ["\0", "\n", "\x7f", "\x85", "\x9f", "\u2028", "\u202e", "\u2066", "\ufdd0", "\uffff"]


@pytest.mark.parametrize("character", [*FORBIDDEN, "\ud800", "\U0001fffe", "\U0010ffff"])
def test_forbidden_characters_are_named(character):
    with pytest.raises(ValueError, match=f"U\\+{ord(character):04X} is not allowed"):
        check_identifier(f"line{character} 3")
    assert character not in FORBIDDEN or not re.search(SCHEMA_PATTERN, f"line{character} 3")


@pytest.mark.parametrize("name", ["", "Straße 3/é", "日本", "🔩", "a\u00a0b", "\u200f", "\ufeff", "\ue000"])
def test_other_characters_are_kept(name):
    assert check_identifier(name) == name
    assert re.search(SCHEMA_PATTERN, name)
