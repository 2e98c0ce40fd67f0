import json
import re
import shlex
import shutil

import cv2
import numpy as np
import pytest

from datasets.__main__ import main
from datasets.loading import load_dataset


def test_toy_then_inspect(tmp_path, capsys):
    out, sheet = tmp_path / "toy", tmp_path / "sheet.png"
    main(["toy", str(out), "--count", "18", "--size", "32", "--classes", "4", "--seed", "2"])
    assert f"18 images in {out}" in capsys.readouterr().out
    main(["inspect", "toy", str(out), "--out", str(sheet)])
    printed = capsys.readouterr().out
    assert "scratch, px" in printed and "equal photographs in different splits: 0" in printed
    assert sheet.exists()


def test_pack_then_inspect(kolektor_root, tmp_path, capsys):
    pytest.importorskip("tensorflow")
    splits, out = tmp_path / "splits.txt", f"ram://{tmp_path.name}/packed"
    splits.write_text("train kos01\n")
    main(["pack", "kolektor", str(kolektor_root), out, "--splits", str(splits), "--shard-mb", "1"])
    printed = capsys.readouterr().out
    assert f"2 photographs in 1 shard (0.0 MB) in {out}; 2 without a split left out" in printed
    main(["inspect", "shards", out, "--out", str(tmp_path / "sheet.png")])
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("all "))
    assert line.split() == ["all", "2", "0", "0", "0", "2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["inspect", "kolektor", "nowhere"], "nowhere does not exist"),
        (["inspect", "mvtek", "."], "Unknown layout 'mvtek'"),
        (["inspect", "kolektor", ".", "--out", "no/such/sheet.png"], "does not exist"),
        (["inspect", "shards", "nowhere"], "nowhere/index.json does not exist"),
        (["pack", "kolektor", "nowhere", "packed"], "nowhere does not exist"),
        (["toy", "toy", "--count", "3"], "at least 18"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    printed = refused(arguments, capsys).err
    assert printed.startswith("error: ")
    assert printed.count("\n") == 1
    assert message in printed
    assert list(tmp_path.iterdir()) == []


def refused(arguments, capsys):
    """What a command says that leaves with 2."""
    with pytest.raises(SystemExit) as exit_:
        main([str(argument) for argument in arguments])
    assert exit_.value.code == 2
    return capsys.readouterr()


def test_inspect_names_problems_and_leaks_after_the_sheet_of_the_others(folder_root, tmp_path, capsys):
    shutil.copy(folder_root / "good/a.png", folder_root / "good/copy.png")
    (folder_root / "scratch/d.png").write_bytes(b"")
    (folder_root / "masks/stray.png").write_bytes(b"")
    splits, sheet = tmp_path / "mine.txt", tmp_path / "sheet.png"
    splits.write_text("train good/a\ntest good/copy\nval dent\nval scratch\n")
    command = ["inspect", "folder", folder_root, "--splits", splits, "--out", sheet]
    printed = refused(command, capsys)
    assert "The data set has 2 problems:" in printed.err
    assert "1 picture is in different splits:\n  good/a (train) = good/copy (test)" in printed.err
    assert "photographs" in printed.out and sheet.exists()
    allowed = refused([*command, "--allow-leak", "good"], capsys).err
    assert "2 problems" in allowed
    assert "different splits" not in allowed


def test_webp_is_read_with_a_warning(folder_root, write_picture, tmp_path, capsys):
    for name, words in (("one", "1 photograph is a WebP file (good/one)"), ("two", "2 photographs are Web")):
        write_picture(folder_root / f"good/{name}.webp")
        main(["inspect", "folder", str(folder_root), "--out", str(tmp_path / "sheet.png")])
        assert f"warning: {words}" in capsys.readouterr().err


def test_the_advice_about_a_label_that_may_mean_good_gives_the_right_counts(tmp_path, write_picture, capsys):
    for name in ("images/a", "images/b", "images/c", "masks/dent/a"):
        write_picture(tmp_path / f"own/{name}.png", mask=name.startswith("masks"))
    for name in "bc":
        flags = {"imagePath": f"{name}.png", "shapes": [], "flags": {"ohne Grat": True}}
        (tmp_path / f"own/images/{name}.json").write_text(
            json.dumps({**flags, "imageHeight": 12, "imageWidth": 20})
        )
    command = ["inspect", "auto", str(tmp_path / "own"), "--out", str(tmp_path / "sheet.png")]
    advice = refused(command, capsys).err
    assert "And 1 more with this problem: images/c" in advice
    for option, counts in (("good", {"good": 2, "dent": 1}), ("defect", {"dent": 1, "ohne Grat": 2})):
        answer = re.search(rf"give (--{option} '.*?')", advice)
        main([*command, *shlex.split(answer[1])])
        printed = capsys.readouterr().out
        assert all(re.search(rf"^{name} .* {count}$", printed, re.M) for name, count in counts.items())


@pytest.fixture
def many_root(tmp_path, write_picture):
    """Eight good photographs, two of them equal, four dents."""
    root = tmp_path / "many"
    for number in range(8):
        write_picture(root / f"good/{number}.png")
    for number in range(4):
        write_picture(root / f"dent/{number}.png")
        write_picture(root / f"masks/dent/{number}.png", mask=True)
    shutil.copy(root / "good/0.png", root / "good/7.png")
    return root


def test_split_writes_a_file_that_says_how_it_was_made(many_root, tmp_path, capsys):
    out = tmp_path / "mine.txt"
    main(["split", "folder", str(many_root), str(out), "--val", "0.25", "--test", "0.25", "--seed", "3"])
    assert f"12 photographs split in {out}" in capsys.readouterr().out
    assert out.read_text().startswith(
        "# python -m datasets split folder: groups and equal photographs together, "
        "val 0.25, test 0.25, seed 3\n"
    )
    splits = {r.name: r.split for r in load_dataset("folder", many_root, out).items}
    assert splits["good/0"] == splits["good/7"]
    assert sorted(splits[f"dent/{number}"] for number in range(4)) == ["test", "train", "train", "val"]
    assert f"{out} exists" in refused(["split", "folder", many_root, out], capsys).err


def test_split_lists_photographs_with_problems(many_root, tmp_path, capsys):
    (many_root / "good/1.png").write_bytes(b"no picture")
    command = ["split", "folder", str(many_root), str(tmp_path / "mine.txt")]
    assert "1.png is not an image" in refused(command, capsys).err
    main([*command, "--skip-broken"])
    assert f"left out: {many_root / 'good/1.png'} is not an image" in capsys.readouterr().err
    assert "good/1" not in (tmp_path / "mine.txt").read_text()


def test_split_writes_folds_all_or_none(many_root, tmp_path, capsys):
    out = tmp_path / "folds"
    words = refused(["split", "folder", many_root, out, "--folds", "9"], capsys).err
    assert "would hold" in words
    assert not out.exists()
    main(["split", "folder", str(many_root), str(out), "--folds", "2", "--val", "0.5"])
    assert sorted(path.name for path in out.iterdir()) == ["fold_0.txt", "fold_1.txt"]
    sets = [load_dataset("folder", many_root, path) for path in sorted(out.iterdir())]
    tested = [item.name for dataset in sets for item in dataset.of_split("test")]
    assert sorted(tested) == [item.name for item in sets[0].items]
    assert "fold 1 of 2, val 0.5 of the others, seed 0" in (out / "fold_1.txt").read_text()


@pytest.fixture
def exposed_root(tmp_path):
    """Twelve surfaces, good ones and dents in turn, each at three exposures that no name joins."""
    root, draw = tmp_path / "exposed", np.random.default_rng(0)
    for folder in ("good", "dent", "masks/dent"):
        (root / folder).mkdir(parents=True)
    for number in range(12):
        folder = ("good", "dent")[number % 2]
        surface = cv2.resize(draw.uniform(40, 200, (24, 24)), (64, 64), interpolation=cv2.INTER_CUBIC)
        for exposure, gain in zip("abc", (0.6, 0.8, 1.0), strict=True):
            name = f"{exposure}{number:02d}.png"
            cv2.imwrite(str(root / folder / name), np.clip(gain * surface, 0, 255).astype(np.uint8))
            if folder == "dent":
                cv2.imwrite(str(root / "masks/dent" / name), np.eye(64, dtype=np.uint8) * 255)
    return root


def test_inspect_lists_near_duplicates_in_different_splits(exposed_root, tmp_path, capsys):
    listed = tmp_path / "duplicates.txt"
    command = ["inspect", "folder", exposed_root, "--out", tmp_path / "sheet.png", "--twins"]
    main([*map(str, command), str(listed)])
    printed = capsys.readouterr()
    assert "photographs have a near duplicate in another split" in printed.err
    assert f"near duplicates in different splits: {listed}" in printed.out
    lines = listed.read_text().splitlines()
    assert len(lines) > 5
    assert all(line in printed.err for line in lines[:5])
    assert "gone/a.txt cannot be written" in refused([*command, tmp_path / "gone/a.txt"], capsys).err


def test_split_keeps_near_duplicates_together_on_request(exposed_root, tmp_path, capsys):
    command = ["split", "folder", str(exposed_root)]
    main([*command, str(tmp_path / "grouped.txt"), "--group-twins"])
    printed = capsys.readouterr()
    assert "36 photographs have near duplicates, in 12 clusters" in printed.out
    assert printed.err == ""
    main([*command, str(tmp_path / "folds"), "--group-twins", "--folds", "3"])
    for path in (tmp_path / "grouped.txt", *(tmp_path / "folds").iterdir()):
        assert "together, near duplicates together, " in path.read_text()
        splits = {}
        for item in load_dataset("folder", exposed_root, path).items:
            splits.setdefault(item.name[-2:], set()).add(item.split)
        assert [len(found) for found in splits.values()] == [1] * 12


def test_split_warns_of_near_duplicates_that_it_cannot_keep_together(exposed_root, tmp_path, capsys):
    """Six dented surfaces do not suffice for seven folds."""
    command = ["split", "folder", str(exposed_root), str(tmp_path / "folds"), "--folds", "7", "--val", "0"]
    main([*command, "--group-twins"])
    words = capsys.readouterr().err
    assert "warning: Near duplicates in 12 clusters are not kept together: 36 (" in words
    assert "otherwise a part of the split would lose its share of a class" in words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a.txt", "--folds", "2", "--test", "0.5"], "--folds and --test exclude each other"),
        (["gone/a.txt"], "gone/a.txt cannot be written (No such file or directory)"),
    ],
)
def test_split_refuses_what_it_cannot_do(many_root, tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert words in refused(["split", "folder", many_root, *arguments], capsys).err
    assert list(tmp_path.iterdir()) == [many_root]


def test_pack_refuses_problems_and_leaks(many_root, tmp_path, capsys):
    pytest.importorskip("tensorflow")
    (many_root / "good/1.png").write_bytes(b"")
    (many_root / "splits.txt").write_text("train good/0\ntest good/7\ntrain dent\nval good/1\n")
    out = tmp_path / "packed"
    command = ["pack", "folder", many_root, out]
    assert "has 1 problem:" in refused(command, capsys).err
    assert "good/0 (train) = good/7 (test)" in refused([*command, "--skip-broken"], capsys).err
    assert not out.exists()
    main([str(word) for word in (*command, "--skip-broken", "--allow-leak", "good")])
    assert "6 photographs in 2 shards" in capsys.readouterr().out


def test_photographs_above_the_limit_are_named(folder_root, tmp_path, capsys):
    command = ["split", "folder", folder_root, tmp_path / "out.txt", "--max-pixels", "239"]
    printed = refused(command, capsys).err  # photographs and masks of 20 × 12 px
    assert "has 20 × 12 = 240 pixels. Expected at most 239;" in printed
    assert "And 3 more with this problem: good/a, good/b …" in printed
