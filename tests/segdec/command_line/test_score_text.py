import pytest

from segdec.command_line.score_text import score_text


@pytest.mark.parametrize(
    ("numbers", "texts"),
    [
        ((0.8, 0.5, None), ("0.800", "0.500")),
        ((0.5, 0.5, None), ("0.500", "0.500")),
        ((0.05, 0.091, 0.02), ("0.050", "0.020-0.091")),
        ((0.0911, 0.09124, 0.02), ("0.0911", "0.0200-0.0912")),
        ((1e-9, 2e-9, None), ("0.000000", "0.000000")),
    ],
)
def test_scores_have_enough_decimals(
    numbers: tuple[float, float, float | None], texts: tuple[str, str]
) -> None:
    assert score_text(*numbers) == texts
