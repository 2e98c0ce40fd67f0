"""Photographs are found by the names that tools write."""

from pathlib import Path

import pytest

from datasets.formats.photograph_finder import PhotographFinder


@pytest.mark.parametrize(
    ("written", "photograph"),
    [
        ("/data/local-files/?d=parts%2Fa+b.jpg", "a b.jpg"),
        ("/data/local-files/?d=parts/a+1.jpg", "a+1.jpg"),
        ("/data/upload/3/0123abcd-a_b.jpg", "a b.jpg"),
        ("/data/upload/3/0123abcd-c_1.jpg", "c (1).jpg"),
        ("d.jpg", "scratch/d.jpg"),
    ],
)
def test_a_name_of_a_tool(written: str, photograph: str) -> None:
    root = Path("/parts")
    names = ("a b.jpg", "a+1.jpg", "c (1).jpg", "good/d.jpg", "scratch/d.jpg")
    finder = PhotographFinder(root / name for name in names)
    assert finder.find(written, root / "annotations/scratch") == root / photograph


def test_other_names_are_not_changed() -> None:
    with pytest.raises(ValueError, match="missing"):
        PhotographFinder([Path("/parts/a b.jpg")]).find("a_b.jpg", Path("/parts"))
