import argparse
from collections import Counter
from pathlib import Path

import pytest

from segdec.command_line.photographs import Shard, find_photographs, parse_shard
from segdec.errors import ConfigError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    names = "b/2.PNG b/1.jpg a.tiff b/deep/3.webp b/notes.md .hidden/4.png b/.5.png c/x"
    for name in names.split():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def names(root: Path, *arguments: str) -> list[str]:
    return [path.relative_to(root).as_posix() for path in find_photographs(root / word for word in arguments)]


def test_files_are_taken_as_given_and_once(root: Path) -> None:
    given = ["missing.png", "b/notes.md", "b/2.PNG", "b", "b/2.PNG"]
    assert names(root, *given) == ["missing.png", "b/notes.md", "b/2.PNG", "b/1.jpg", "b/deep/3.webp"]


def test_ignored_files_of_folders_are_counted_by_type(root: Path) -> None:
    (root / "b/deep/5.xml").touch()
    (root / "b/deep/6.XML").touch()
    ignored: Counter[str] = Counter()
    find_photographs([root, root / "b/notes.md"], ignored)
    assert ignored == {".xml": 2, ".md": 1, "none": 1}


def test_links_are_followed_but_not_in_circles(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "6.png").touch()
    (root / "c/linked").symlink_to(elsewhere)
    (root / "c/circle").symlink_to(root)
    (root / "c/lost.png").symlink_to(root / "nowhere")
    linked = ["c/linked/6.png", "c/lost.png"]  # the second one is an error when it is read
    assert names(root, ".") == ["a.tiff", "b/1.jpg", "b/2.PNG", "b/deep/3.webp", *linked]


def test_folder_without_photographs_is_rejected(root: Path) -> None:
    with pytest.raises(ConfigError, match=r"c has no photographs\. Expected files of the types \.bmp, "):
        find_photographs([root / "a.tiff", root / "c"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("list.txt", "b/1.jpg\n\n  a.tiff\n"),
        ("list.csv", "label,image\ngood,b/1.jpg\n,a.tiff\n"),
        ("list.jsonl", '{"image": "b/1.jpg", "label": "good"}\n\n{"image": "a.tiff"}\n'),
    ],
)
def test_list_argument_is_relative_to_its_folder(root: Path, name: str, text: str) -> None:
    (root / name).write_text(text)
    assert names(root, name) == ["b/1.jpg", "a.tiff"]


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("list.txt", "\n", "names no photograph"),
        ("list.csv", "file\na.tiff\n", "has no column 'image'"),
        ("list.jsonl", '{"image": 5}\n', "line 1 is not an object with an 'image'"),
        ("list.jsonl", "a.tiff\n", "is not a list of photographs"),
        ("missing.txt", None, "cannot be read: No such file"),
    ],
)
def test_invalid_lists_are_rejected(root: Path, name: str, text: str | None, error: str) -> None:
    if text is not None:
        (root / name).write_text(text)
    with pytest.raises(ConfigError, match=error):
        names(root, name)


def test_pattern_argument(root: Path) -> None:
    assert names(root, "**/*.[pP][nN][gG]") == ["b/2.PNG"]
    assert names(root, "b/*") == ["b/1.jpg", "b/2.PNG"]
    with pytest.raises(ConfigError, match="has no photographs"):
        names(root, "b/*.bmp")


def test_a_shard_is_two_plain_numbers() -> None:
    assert parse_shard("3/16") == Shard(3, 16)
    for text in ("0/2", "3/2", "1/", "1/+2", "1/2/3", "1_0/16", "٣/٤", f"1/{'9' * 5000}"):
        with pytest.raises(argparse.ArgumentTypeError, match="Expected NUMBER/COUNT"):
            parse_shard(text)


def test_every_photograph_is_in_one_shard() -> None:
    photographs = [Path(f"line/{number}.png") for number in range(200)]
    shards = [Shard(number, 3).select(photographs) for number in (1, 2, 3)]
    assert sorted(path for shard in shards for path in shard) == sorted(photographs)
    assert min(map(len, shards)) > 40
    assert Shard(2, 3).select(photographs[::2]) == [path for path in shards[1] if path in photographs[::2]]
