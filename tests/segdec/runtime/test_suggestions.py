import pytest

from segdec.runtime.suggestions import nearest_name


@pytest.mark.parametrize(("name", "expected"), [("hight", "height"), ("widht", "width"), ("WIDTHS", "size")])
def test_suggestion_is_always_a_known_name(name: str, expected: str) -> None:
    known = {"size": 1} if name.isupper() else {"size": 1, "height": 2, "width": 3}
    assert nearest_name(name, known) == expected
