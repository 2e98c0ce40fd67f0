import re

import numpy as np
import pytest

from benchmarks.near_duplicates import ALTERATIONS, main
from datasets.layouts.toy import write_toy
from segdec.images import write_png


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """The output for a toy set."""
    root = tmp_path_factory.mktemp("twins") / "toy"
    write_toy(root, 60, size=64)
    with pytest.MonkeyPatch.context() as patch:
        lines: list[str] = []
        patch.setattr("builtins.print", lambda *words, **_: lines.append(" ".join(map(str, words))))
        main(["toy", str(root), "--altered", "20", "--timed", "3000"])
    return lines


def test_toy_parts_are_no_duplicates_and_most_altered_copies_are(printed):
    assert printed[0].startswith("60 photographs in 60 groups")
    assert printed[1].endswith("duplicates 0.0%")
    shares = {
        found[1].strip(): float(found[2])
        for line in printed
        if (found := re.fullmatch(r"  (.{22})5 %.*duplicates ([\d.]+)%", line))
    }
    assert shares.keys() == ALTERATIONS.keys()
    # At 64 px, 1 % and 2 % are one pixel, and a cell of the thumbnail does not average out noise.
    assert all(share > 80 for name, share in shares.items() if not name.startswith(("moved", "noise")))
    assert min(shares["moved by 1 %"], shares["noise, 10 levels"]) > 40
    assert shares["moved by 4 %"] < 10
    counts = [int(line.split()[-1]) for line in printed if line.startswith("  from")]
    assert (len(counts), sum(counts)) == (10, 60)
    assert re.fullmatch(
        r"3000 photographs, 4498500 pairs: [\d.]+ s, [\d.]+ s of CPU; 0 duplicates", printed[-1]
    )


def test_alterations_do_what_they_are_named():
    image = np.arange(100 * 50, dtype=np.uint16).reshape(100, 50, 1).astype(np.uint8)
    assert (ALTERATIONS["moved by 4 %"](image)[4:, 2:] == image[:-4, :-2]).all()
    assert (ALTERATIONS["cropped by 2 %"](image) == image[2:98, 1:49]).all()
    assert ALTERATIONS["exposed × 1.5"](np.full((1, 1, 1), 200, np.uint8)) == 255
    assert ALTERATIONS["gamma 2"](np.full((1, 1, 1), 51, np.uint8)) == 10  # 255 · 0.2²
    for alter in ALTERATIONS.values():
        for channels in (1, 3):
            altered = alter(np.repeat(image, channels, axis=2))
            assert (altered.dtype, altered.ndim, altered.shape[2]) == (np.uint8, 3, channels)
            assert not np.array_equal(altered, np.repeat(image, channels, axis=2))


def test_too_few_photographs_are_an_error(tmp_path, capsys):
    for name in ("good/0", "good/1", "dent/2"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_png(tmp_path / f"{name}.png", np.zeros((4, 4, 1), np.uint8))
    (tmp_path / "supervision.txt").write_text("label dent\n")
    with pytest.raises(SystemExit):
        main(["folder", str(tmp_path)])
    assert "has 3 photographs. Expected at least 10" in capsys.readouterr().err
