import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from segdec.__main__ import main, output_stems
from segdec.images import read_image, write_png


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    """Two photographs of different sizes in folders of their own, one name twice."""
    pixels = np.random.default_rng(0).integers(0, 256, (64, 88, 1), dtype=np.uint8)
    for name, image in {"a/part.png": pixels, "b/part.png": pixels[:61, :83], "b/other.png": pixels}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_png(tmp_path / name, image)
    return tmp_path


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "segdec", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])


def test_table_masks_and_overlays(
    photographs: Path, tiny_artifact: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images = [photographs / name for name in ("a/part.png", "b/part.png", "b/other.png")]
    out = photographs / "out"
    code = main(["predict", *map(str, images), "--model", str(tiny_artifact), "--out", str(out)])
    lines = capsys.readouterr().out.splitlines()
    assert code == 0
    assert lines[0].split() == ["image", "label", "score", "threshold", "regions"]
    assert [line.split()[0] for line in lines[1:]] == list(map(str, images))
    assert {line.split()[1] for line in lines[1:]} <= {"good", "defect"}
    stems = ("a_part", "b_part", "other")
    assert sorted(path.name for path in out.iterdir()) == sorted(
        f"{stem}_{kind}.png" for stem in stems for kind in ("mask", "overlay")
    )
    assert read_image(out / "b_part_mask.png").pixels.shape == (61, 83, 1)


def test_columns_stand_below_their_headings(
    photographs: Path, tiny_artifact: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["predict", str(photographs / "a/part.png"), "--model", str(tiny_artifact)])
    heading, row = capsys.readouterr().out.splitlines()
    for word in ("score", "threshold", "regions"):
        assert row[: heading.index(word) + len(word)][-1].isdigit()
    assert row[heading.index("label") - 1] == " "


def test_threshold_decides(
    photographs: Path, tiny_artifact: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = str(photographs / "a/part.png")
    for threshold, label in (("0", "defect"), ("1", "good")):
        assert main(["predict", image, "--model", str(tiny_artifact), "--threshold", threshold]) == 0
        assert capsys.readouterr().out.splitlines()[1].split()[1] == label


def test_bad_image_does_not_stop_the_others(
    photographs: Path, tiny_artifact: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (photographs / "text.png").write_text("no picture")
    names = [str(photographs / name) for name in ("text.png", "a/part.png")]
    assert main(["predict", *names, "--model", str(tiny_artifact)]) == 1
    output = capsys.readouterr()
    assert output.out.splitlines()[1].split()[1] == "error"
    assert len(output.out.splitlines()) == 3
    assert output.err.count("error: ") == 1
    assert "text.png is not an image of a known type" in output.err


def test_photograph_that_does_not_fit_the_model_is_named(
    photographs: Path, tiny_artifact: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    colour = photographs / "colour.png"
    write_png(colour, np.full((8, 8, 3), (255, 0, 0), np.uint8))
    assert main(["predict", str(colour), "--model", str(tiny_artifact)]) == 1
    assert f"error: {colour}: The image is in colour" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--threshold", "1.5"], "--threshold 1.5 is no score. Expected a number from 0 to 1"),
        (["--out", "a"], "holds the images themselves"),
        (["--out", "a/part.png/below"], "cannot be created"),
    ],
)
def test_wrong_option_is_one_clear_error(
    options: list[str],
    text: str,
    photographs: Path,
    tiny_artifact: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(photographs)
    with pytest.raises(SystemExit) as caught:
        main(["predict", "a/part.png", "--model", str(tiny_artifact), *options])
    assert caught.value.code == 2
    assert text in capsys.readouterr().err


def test_output_that_cannot_be_written_is_one_clear_error(
    photographs: Path, tiny_artifact: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = photographs / "out"
    (out / "part_overlay.png").mkdir(parents=True)
    with pytest.raises(SystemExit) as caught:
        main(["predict", str(photographs / "a/part.png"), "--model", str(tiny_artifact), "--out", str(out)])
    assert caught.value.code == 2
    assert "cannot be written" in capsys.readouterr().err


def test_version_as_a_process() -> None:
    done = run("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("segdec ")


def test_damaged_artifact_as_a_process(artifact_copy: Path, photographs: Path) -> None:
    (artifact_copy / "tensorflow/saved_model.pb").write_bytes(b"")
    done = run("predict", photographs / "a/part.png", "--model", artifact_copy)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert "saved_model.pb has changed" in done.stderr


@pytest.mark.parametrize(
    ("images", "stems"),
    [
        (["x/a.png", "x/b.png"], ["a", "b"]),
        (["x/a.png", "y/a.png"], ["x_a", "y_a"]),
        (["x/a.png", "x/a.jpg", "x/A.bmp"], ["x_a", "x_a-2", "x_A-3"]),
        (["x/a.png", "y/a.png", "x_a.png"], ["x_a-2", "y_a", "x_a"]),
        (["1/x/a.png", "2/x/a.png"], ["x_a", "x_a-2"]),
    ],
)
def test_output_names_never_collide(images: list[str], stems: list[str]) -> None:
    assert output_stems([Path(image) for image in images]) == stems
