import io
import json
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from segdec import __version__
from segdec.__main__ import main
from segdec.command_line.inspection_loop import MIN_PROGRESS_IMAGES
from segdec.command_line.overlay_folder import output_stems
from segdec.images import read_image, read_mask, write_png
from tests.forged_artifact import forge

ROOT = Path(__file__).parents[3]


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    """Two photographs of different sizes in folders of their own, one name twice."""
    pixels = np.random.default_rng(0).integers(0, 256, (64, 88, 1), dtype=np.uint8)
    for name, image in {"a/part.png": pixels, "b/part.png": pixels[:61, :83], "b/other.png": pixels}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_png(tmp_path / name, image)
    return tmp_path


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


def test_bad_image_does_not_stop_the_others(
    photographs: Path, tiny_artifact: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (photographs / "text.png").write_text("no picture")
    names = [str(photographs / name) for name in ("text.png", "a/part.png")]
    assert main(["predict", *names, "--model", str(tiny_artifact)]) == 1
    output = capsys.readouterr()
    assert output.out.splitlines()[1].split()[1] == "NOT_INSPECTED"
    assert len(output.out.splitlines()) == 3
    assert output.err.count("error: ") == 1
    assert output.err.splitlines()[-1] == (
        "NOT INSPECTED: 1 of 2 photographs. Hold these parts; their state is unknown."
    )
    assert "text.png is not an image of a known type" in output.err


def test_webp_is_inspected_where_its_risk_is_accepted(
    photographs: Path, tiny_artifact: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = photographs / "part.webp"
    image.write_bytes(cv2.imencode(".webp", np.full((16, 24, 3), 90, np.uint8))[1].tobytes())
    command = ["predict", str(image), "--model", str(tiny_artifact)]
    assert main(command) == 1
    assert f"error: {image} is a WebP file" in capsys.readouterr().err
    assert main([*command, "--accept-webp"]) == 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--threshold", "1.5"], "--threshold 1.5 is not a score. Expected a number from 0 to 1"),
        (["--engine", "abacus"], "engine 'abacus' is unknown. Expected one of: tensorflow"),
        (["--engine", "openvino"], "exported for tensorflow, not for the engine 'openvino'. Export it again"),
        (["--out", "a"], "contains the images themselves"),
        (["--out", "b/out"], "--out b/out is in b: the next run would take its pictures for"),
        (["--out", "a/part.png/below"], "cannot be created"),
        (["--results", "a/part.png"], "--results a/part.png cannot be used: File exists"),
        (["--results", "found", "--out", "out"], "--results and --out were given. Use only one of them"),
        (["--ray"], "--ray needs --results"),
        (["--shard", "0/4"], "'0/4' is not a shard. Expected NUMBER/COUNT, for example 3/16"),
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
        main(["predict", "a/part.png", "b", "--model", str(tiny_artifact), *options])
    assert caught.value.code == 2
    assert text in capsys.readouterr().err


def test_photograph_for_review_has_both_thresholds(
    photographs: Path, artifact_copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forge(artifact_copy, thresholds={"score": 0.999, "mask": 0.5, "review": 0.0})
    images, out = [str(photographs / name) for name in ("a/part.png", "b/part.png")], photographs / "out"
    command = ["predict", *images, "--model", str(artifact_copy)]
    assert main([*command, "--out", str(out)]) == 0
    output = capsys.readouterr()
    heading, *rows = output.out.splitlines()
    assert [(row.split()[1], row.split()[3]) for row in rows] == [("review", "0.000-0.999")] * 2
    assert len({row.index("0.000-0.999") + 11 for row in rows} | {heading.index("threshold") + 9}) == 1
    assert output.err == "FOR REVIEW: 2 of 2 photographs. A person must check them.\n"
    assert len(list(out.iterdir())) == 4
    assert main([*command, "--threshold", "1"]) == 0
    output = capsys.readouterr()
    assert [row.split()[1:4:2] for row in output.out.splitlines()[1:]] == [["good", "1.000"]] * 2
    assert output.err == ""


# === Folders ===


class Terminal(io.StringIO):
    """Records output like a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("count", "stderr", "shown"),
    [
        (MIN_PROGRESS_IMAGES + 1, Terminal(), True),
        (MIN_PROGRESS_IMAGES, Terminal(), False),
        (MIN_PROGRESS_IMAGES + 1, io.StringIO(), False),
    ],
)
def test_progress_is_shown_only_on_a_terminal(
    count: int,
    stderr: io.StringIO,
    shown: bool,
    tmp_path: Path,
    tiny_artifact: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for number in range(count):
        write_png(tmp_path / f"{number}.png", np.full((16, 16, 1), number, np.uint8))
    monkeypatch.setattr(sys, "stderr", stderr)
    assert main(["predict", str(tmp_path), "--model", str(tiny_artifact)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == count + 1
    assert (f"0/{count}" in stderr.getvalue()) == shown
    assert (stderr.getvalue() == "") != shown


# === A service ===


def test_service_answers_as_an_artifact_does(
    photographs: Path, stub_service, service_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pixels = np.full((5, 8, 1), 20, np.uint8)
    pixels[1:3, 2:6] = 204  # 0.8
    spot, text, out = (photographs / name for name in ("spot.png", "text.png", "out"))
    write_png(spot, pixels)
    text.write_text("no picture")
    images = [str(spot), str(text), str(photographs / "none.png")]
    assert main(["predict", *images, "--url", service_url, "--out", str(out)]) == 1
    output = capsys.readouterr()
    assert [line.split() for line in output.out.splitlines()] == [
        ["image", "label", "score", "threshold", "regions"],
        [images[0], "spot", "0.800", "0.500", "1"],
        [images[1], "NOT_INSPECTED", "-", "-", "-"],
        [images[2], "NOT_INSPECTED", "-", "-", "-"],
    ]
    warning, refused, missing, count = output.err.splitlines()
    assert count.startswith("NOT INSPECTED: 2 of 3 photographs.")
    assert warning == f"warning: {spot}: it is a stub"
    assert refused.startswith(f"error: {text}: The request body is not an image of a known type")
    assert refused.endswith("(422 unsupported_type, request of-the-stub)")
    assert missing.startswith(f"error: {images[2]} cannot be read")
    assert sorted(path.name for path in out.iterdir()) == ["spot_mask.png", "spot_overlay.png"]
    np.testing.assert_array_equal(read_mask(out / "spot_mask.png"), np.where(pixels[..., 0] > 127, 255, 0))
    paths = [path for path, _ in stub_service.requests]
    assert paths == ["/v1/models", "/v1/predict", "/v1/predict"]


def test_service_returns_class_masks(photographs: Path, stub_service, service_url: str) -> None:
    stub_service.mask_classes = True
    pixels = np.full((5, 8, 1), 20, np.uint8)
    pixels[1:3, 2:6] = 204
    image, out = photographs / "spot.png", photographs / "out"
    write_png(image, pixels)
    assert main(["predict", str(image), "--url", service_url, "--out", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "spot_classes.png",
        "spot_mask.png",
        "spot_overlay.png",
    ]
    classes = read_image(out / "spot_classes.png").pixels[..., 0]
    np.testing.assert_array_equal(classes, np.where(pixels[..., 0] > 127, 1, 0))
    np.testing.assert_array_equal(read_mask(out / "spot_mask.png"), np.where(pixels[..., 0] > 127, 255, 0))


def test_service_is_asked_for_the_model_and_with_the_key(
    photographs: Path,
    stub_service,
    service_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stub_service.key = "k1"
    (photographs / "key").write_text("k1\n")
    ask = ["predict", str(photographs / "a/part.png"), "--url", service_url]
    named = ["--model-name", "parts", "--version", "stable", "--threshold", "0.75"]
    assert main([*ask, *named, "--api-key-file", str(photographs / "key")]) == 0
    assert stub_service.requests[-1][0] == "/v1/models/parts/versions/stable/predict"
    assert capsys.readouterr().out.splitlines()[1].split()[3] == "0.750"
    monkeypatch.setenv("SEGDEC_API_KEY", "k1")
    assert main(ask) == 0
    monkeypatch.setenv("SEGDEC_API_KEY", "k2")
    with pytest.raises(SystemExit) as caught:
        main(ask)
    assert caught.value.code == 2
    assert f"error: {service_url} rejects the key in $SEGDEC_API_KEY. " in capsys.readouterr().err
    monkeypatch.delenv("SEGDEC_API_KEY")
    with pytest.raises(SystemExit):
        main(ask)
    expected = (
        f"error: {service_url} requires an API key. Pass it with --api-key-file FILE. (401 unauthorized"
    )
    assert expected in capsys.readouterr().err


@pytest.mark.slow
def test_service_needs_no_tensorflow(photographs: Path, service_url: str) -> None:
    arguments = ["predict", str(photographs / "a/part.png"), "--url", service_url]
    code = (
        "import sys; sys.modules['tensorflow'] = sys.modules['PIL'] = None\n"
        f"from segdec.__main__ import main; sys.exit(main({arguments}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)  # one line: the stub's warning


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ([], "one of the arguments --model --url is required"),
        (["--model", "m", "--url", "http://x"], "not allowed with argument"),
        (["--model", "m", "--model-name", "parts"], "--model-name is only for a service. Use it with --url"),
        (["--url", "http://x", "--max-pixels", "9"], "--max-pixels is only for --model: a service has its"),
        (["--model", "m", "--threads", "0"], "'0' is not a number of threads. Expected a number from 1 to"),
        (["--model", "m", "--max-pixels", "0"], "'0' is not a pixel limit. Expected a number from 1"),
        (["--url", "http://x", "--version", "1"], "--version needs --model-name"),
        (["--url", "x:8000"], "'x:8000' is not the URL"),
        (["--url", "http://x", "--api-key-file", "no"], "--api-key-file no cannot be read: No such file"),
        (["--url", "http://x", "--api-key-file", "a/part.png"], "cannot be read: it is not text"),
        (["--url", "http://x", "--api-key-file", "empty"], "The API key is empty or has spaces"),
    ],
)
def test_conflicting_options(
    options: list[str],
    text: str,
    photographs: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(photographs)
    (photographs / "empty").write_text("\n")
    with pytest.raises(SystemExit) as caught:
        main(["predict", "a/part.png", *options])
    assert caught.value.code == 2
    assert text in capsys.readouterr().err


def test_white_level_of_the_model_is_used_locally_and_remotely(
    photographs: Path, artifact_copy: Path, service_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    forge(artifact_copy, input={"white_level": 4095})
    image, out = photographs / "deep.png", photographs / "out"
    image.write_bytes(cv2.imencode(".png", np.full((16, 24), 3276, np.uint16))[1].tobytes())  # 12-bit data
    for source in (["--model", str(artifact_copy)], ["--url", service_url, "--out", str(out)]):
        assert main(["predict", str(image), *source]) == 0, capsys.readouterr().err
    assert capsys.readouterr().out.splitlines()[-1].split()[1:3] == ["spot", "0.800"]
    assert (out / "deep_overlay.png").exists()


# === Processes and names ===


def test_version_is_that_of_the_manifest(tiny_artifact: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    manifest = json.loads((tiny_artifact / "manifest.json").read_text())
    assert capsys.readouterr().out == f"segdec {manifest['segdec_version']}\n" == f"segdec {__version__}\n"


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
def test_output_names_are_unique(images: list[str], stems: list[str]) -> None:
    assert output_stems([Path(image) for image in images]) == stems
