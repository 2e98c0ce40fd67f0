import pytest

from datasets.annotations.label_studio_rle import decode


def packed(*fields: tuple[int, int]) -> list[int]:
    """Bytes of the numbers, each given as (value, bits), one after the other."""
    bits = "".join(f"{value:0{size}b}" for value, size in fields)
    bits += "0" * (-len(bits) % 8)
    return [int(bits[place : place + 8], 2) for place in range(0, len(bits), 8)]


def header(words: int, word_bits: int = 8) -> list[tuple[int, int]]:
    return [(words, 32), (word_bits - 1, 5), (2, 4), (3, 4), (7, 4), (15, 4)]


# A picture of 3×1 pixels: clear, painted (1, 2, 3, 255), painted with half alpha (9, 9, 9, 128).
PICTURE = [
    *header(12),
    *[(1, 1), (0, 2), (3, 3), (0, 8)],  # repeated, counts of 3 bits, 4 times 0
    *[(0, 1), (1, 2), (3, 4), (1, 8), (2, 8), (3, 8), (255, 8)],  # not repeated, counts of 4 bits, 4 words
    *[(1, 1), (2, 2), (2, 8), (9, 8)],  # counts of 8 bits, 3 times 9
    *[(1, 1), (3, 2), (0, 16), (128, 8)],  # counts of 16 bits, once 128
]


def test_stream_written_by_hand():
    assert decode(packed(*PICTURE), height=1, width=3).tolist() == [[0, 255, 128]]
    assert decode(packed(*PICTURE), height=3, width=1).tolist() == [[0], [255], [128]]


@pytest.mark.parametrize(
    ("values", "size", "reason"),
    [
        (packed(*PICTURE), (1, 4), "have 12 values; expected 16"),
        (packed(*PICTURE), (2**20, 2**20), "too large"),
        (packed(*PICTURE)[:12], (1, 3), "end too early"),
        (packed(*header(12, word_bits=16)), (1, 3), "words of 16 bits"),
        (packed(*header(12), (1, 1), (2, 2), (12, 8), (0, 8)), (1, 3), "exceed the"),
        ([256], (1, 3), "not bytes"),
        ([1.5], (1, 3), "not bytes"),
        ("abc", (1, 3), "not a list of numbers"),
    ],
)
def test_damage_is_named(values, size, reason):
    with pytest.raises(ValueError, match=reason):
        decode(values, *size)
