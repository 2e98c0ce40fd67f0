import sys

import cv2
import numpy as np
import pytest

from datasets.__main__ import main
from segdec.images import read_image


def test_toy_then_inspect(tmp_path, capsys):
    out, sheet = tmp_path / "toy", tmp_path / "sheet.png"
    main(["toy", str(out), "--count", "18", "--size", "32", "--classes", "4", "--seed", "2"])
    assert f"18 images in {out}" in capsys.readouterr().out
    main(["inspect", "toy", str(out), "--out", str(sheet)])
    printed = capsys.readouterr().out
    assert "scratch, px" in printed
    assert "equal photographs in different splits: 0" in printed
    assert read_image(sheet).pixels.shape[2] == 3


def test_inspect_takes_a_split_file(kolektor_root, tmp_path, capsys):
    splits = tmp_path / "splits.txt"
    splits.write_text("test kos01\n")
    options = ["--splits", str(splits), "--out", str(tmp_path / "sheet.png")]
    main(["inspect", "kolektor", str(kolektor_root), *options])
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("all "))
    assert line.split() == ["all", "0", "0", "2", "2", "4"]


def test_pack_then_inspect(kolektor_root, tmp_path, capsys):
    pytest.importorskip("tensorflow")
    splits, out = tmp_path / "splits.txt", f"ram://{tmp_path.name}/packed"
    splits.write_text("train kos01\n")
    main(["pack", "kolektor", str(kolektor_root), out, "--splits", str(splits), "--shard-mb", "1"])
    printed = capsys.readouterr().out
    assert f"2 photographs in 1 shards (0.0 MB) in {out}; 2 without a split left out" in printed
    main(["inspect", "shards", out, "--out", str(tmp_path / "sheet.png")])
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("all "))
    assert line.split() == ["all", "2", "0", "0", "0", "2"]


@pytest.mark.parametrize(
    "arguments", [["inspect", "shards", "packed"], ["pack", "kolektor", "photographs", "packed"]]
)
def test_shards_without_tensorflow_name_the_extra(arguments, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert "'tensorflow' is not installed. Install the extra 'tensorflow'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["inspect", "kolektor", "nowhere"], "nowhere does not exist"),
        (["inspect", "mvtek", "."], "Unknown layout 'mvtek'"),
        (["inspect", "kolektor", ".", "--out", "no/such/sheet.png"], "does not exist"),
        (["inspect", "shards", "nowhere"], "There is no nowhere/index.json"),
        (["inspect", "folder", "gs://bucket/parts"], "reads folders of this machine"),
        (["pack", "kolektor", "nowhere", "packed"], "nowhere does not exist"),
        (["pack", "kolektor", "nowhere", "s3://bucket/parts"], "nowhere does not exist"),
        (["toy", "toy", "--count", "3"], "at least 18"),
        (["toy", "toy", "--size", "3"], "at least 32"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    printed = capsys.readouterr().err
    assert printed.startswith("error: ")
    assert printed.count("\n") == 1
    assert message in printed
    assert list(tmp_path.iterdir()) == []


def test_damaged_photograph_writes_no_sheet(kolektor_root, tmp_path, capsys):
    (kolektor_root / "kos01/Part0.jpg").write_bytes(b"\xff\xd8\xff")
    sheet = tmp_path / "sheet.png"
    with pytest.raises(SystemExit):
        main(["inspect", "kolektor", str(kolektor_root), "--out", str(sheet)])
    assert "Part0.jpg" in capsys.readouterr().err
    assert not sheet.exists()


@pytest.mark.parametrize("level", ["255", "65536", "white"])
def test_white_level_out_of_range(level, capsys):
    with pytest.raises(SystemExit):
        main(["inspect", "folder", "parts", "--white-level", level])
    assert f"'{level}' is no white level. Expected a number from 256 to 65535." in capsys.readouterr().err


def test_12_bit_photographs_are_packed_and_inspected(folder_root, tmp_path, capsys):
    pytest.importorskip("tensorflow")
    for path in (folder_root / "good").iterdir():
        cv2.imwrite(str(path), np.arange(240, dtype=np.uint16).reshape(12, 20) + len(path.stem))
    out, sheet = f"ram://{tmp_path.name}/dark", ["--out", str(tmp_path / "sheet.png")]
    main(["pack", "folder", str(folder_root), out])
    with pytest.raises(SystemExit):
        main(["inspect", "shards", out, *sheet])
    assert "input.white_level" in capsys.readouterr().err
    main(["inspect", "shards", out, *sheet, "--white-level", "4095"])
    assert "contact sheet" in capsys.readouterr().out
