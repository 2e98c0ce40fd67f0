"""What a set may hold that cannot be learnt from: every offender is named at once, by the command itself."""

import cv2
import numpy as np
import pytest

from datasets.__main__ import main


def folder(root, picture):
    """20×12 px (width × height)."""
    for name in (
        "good/a",
        "good/b",
        "good/c",
        "good/gone",
        "dent/d",
        "dent/e",
        "dent/f",
        "dent/g",
        "scratch/h",
    ):
        picture(root / f"{name}.png")
    for name in "fg":
        picture(root / f"masks/dent/{name}.png", mask=True)
    picture(root / "masks/dent/d.png", mask=True, size=(24, 12))
    picture(root / "masks/scratch/h.png", mask=True, size=(12, 20))
    cv2.imwrite(str(root / "masks/dent/e.png"), np.arange(240, dtype=np.uint8).reshape(12, 20))
    (root / "good/f.png").write_bytes((root / "dent/f.png").read_bytes())
    (root / "good/gone.png").unlink()
    (root / "good/gone.png").symlink_to(root / "good/gone.png")
    (root / "good/again").symlink_to(root)
    (root / "good/c.png").write_bytes(b"no picture")
    return [
        "dent/d.png is 24×12 pixels",
        "scratch/h.png is 12×20 pixels",
        "dent/e.png has 240 values: 0, 1, 2, 3, 4, 5, …",
        "good/f.png (good) is the same picture as",
        "dent/f.png (dent) is the same picture as",
        "gone.png cannot be read: Too many levels of symbolic links",
        "again is a folder in a class folder",
        "c.png is not an image",
    ]


def test_every_problem_is_listed_at_once_and_can_be_left_out(tmp_path, write_picture, capsys):
    root, out = tmp_path / "set", tmp_path / "splits.txt"
    root.mkdir()
    expected = folder(root, write_picture)
    for command in (["inspect", "--out", str(tmp_path / "sheet.png")], ["split", str(out)]):
        with pytest.raises(SystemExit):
            main([command[0], "folder", str(root), *command[1:]])
        messages = [line.removeprefix("  ") for line in capsys.readouterr().err.splitlines()[1:-1]]
        assert len(messages) == len(expected)
        for words in expected:
            assert sum(words in line for line in messages) == 1, (words, messages)
    assert not out.exists()
    main(["split", "folder", str(root), str(out), "--skip-broken", "--val", "0", "--test", "0"])
    left_out = [line.removeprefix("left out: ") for line in capsys.readouterr().err.splitlines()]
    assert [line for line in left_out if "image/s" not in line] == messages
    assert [line.split()[1] for line in out.read_text().splitlines()[1:]] == ["dent/g", "good/a", "good/b"]
