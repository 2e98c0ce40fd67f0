import pytest

from segdec.imaging.run_lengths import decode_run_lengths


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("", []),
        ("222", [2, 2, 2]),
        ("121O0", [1, 2, 1, 1, 1]),  # 1, 2, 1, then 2 - 1 and 1 + 0
        ("P1", [32]),  # 0b100000 says that more follow, 0b00001 is worth 32
        ("O", [-1]),  # the sign of five bits alone
    ],
)
def test_characters_encode_five_bits(text: str, counts: list[int]) -> None:
    assert decode_run_lengths(text) == counts


@pytest.mark.parametrize(
    ("text", "words"), [("14 ", "' '"), ("1é", "'é'"), ("14o", "end inside a number"), ("o" * 10_000, "'o'")]
)
def test_invalid_codes_are_reported(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        decode_run_lengths(text)
