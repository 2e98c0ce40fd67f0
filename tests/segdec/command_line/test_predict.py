import io
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from segdec import __version__
from segdec.__main__ import main
from segdec.artifact import TrainingPhotographs
from segdec.command_line.overlay_folder import output_stems
from segdec.engines import Logits
from segdec.errors import ArtifactError
from segdec.images import read_image, read_mask, write_png
from segdec.predictor import Predictor
from tests.forged_artifact import forge


@pytest.fixture(autouse=True)
def photographs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the working folder, two photographs of different sizes, one name twice."""
    monkeypatch.chdir(tmp_path)
    pixels = np.random.default_rng(0).integers(0, 256, (64, 88, 1), dtype=np.uint8)
    for name, image in {"a/part.png": pixels, "b/part.png": pixels[:61, :83], "b/other.png": pixels}.items():
        Path(name).parent.mkdir(exist_ok=True)
        write_png(Path(name), image)


@pytest.fixture
def predict(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, list[list[str]], str]]:
    """Runs `segdec predict`; returns its exit code, the words of its table, and stderr."""

    def run(*arguments: object) -> tuple[int, list[list[str]], str]:
        try:
            code = main(["predict", *map(str, arguments)])
        except SystemExit as error:
            code = error.code
        printed = capsys.readouterr()
        return code, [line.split() for line in printed.out.splitlines()], printed.err

    return run


def found(folder: str) -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


HEADINGS = ["image", "label", "score", "threshold", "regions"]


def test_table_masks_and_overlays(tiny_artifact: Path, predict) -> None:
    Path("text.png").write_text("no picture")
    images = ["a/part.png", "text.png", "b/part.png", "b/other.png"]
    code, (headings, *rows), err = predict(*images, "--model", tiny_artifact, "--out", "out")
    assert (code, headings) == (1, HEADINGS)
    assert [row[0] for row in rows] == images
    assert rows[1][1:] == ["NOT_INSPECTED", "-", "-", "-"]
    assert {row[1] for row in rows} <= {"good", "defect", "NOT_INSPECTED"}
    stems = ("a_part", "b_part", "other")
    assert found("out") == sorted(f"{stem}_{kind}.png" for stem in stems for kind in ("mask", "overlay"))
    assert read_image(Path("out/b_part_mask.png")).pixels.shape == (61, 83, 1)
    error, count = err.splitlines()
    assert error.startswith("error: text.png is not an image of a known type")
    assert count == "NOT INSPECTED: 1 of 4 photographs. Hold these parts; their state is unknown."


def set_trained(artifact: Path, trained: TrainingPhotographs | None) -> None:
    assert trained is not None
    forge(artifact, training_photographs=trained.model_dump(mode="json"))


def test_a_model_of_format_10_inspects_any_photograph_with_a_note(artifact_copy: Path, predict) -> None:
    """Its limits were of another kind."""
    ranges = {"heights": [32, 32], "widths": [48, 48], "aspects": [1.5, 1.5]}
    trained = {**ranges, "limits": {"false_alarm_rate": 0.001, "photographs": 20, "measures": {}}}
    forge(artifact_copy, format_version=10, training_photographs=trained)
    cv2.imwrite("black.png", np.zeros((32, 48), np.uint8))
    code, rows, err = predict("black.png", "--model", artifact_copy)
    assert code == 0 and rows[-1][1] in ("good", "defect")
    assert "It inspects any photograph, because segdec" in err and "Export it again." in err


def test_photograph_of_another_size_is_a_warning(artifact_copy: Path, predict) -> None:
    set_trained(artifact_copy, TrainingPhotographs.of([(16, 24)], [8]))
    cv2.imwrite("alike.png", np.full((16, 24), 90, np.uint8))
    cv2.imwrite("other.png", np.full((32, 24), 30_000, np.uint16))
    _, _, err = predict("alike.png", "other.png", "--model", artifact_copy)
    assert "alike.png: " not in err
    for kind in ("aspect", "size", "bit_depth"):
        assert f"{kind}: the " in err


def test_photograph_of_another_surface_is_not_inspected(
    artifact_copy: Path, surface_training: TrainingPhotographs, predict, monkeypatch: pytest.MonkeyPatch
) -> None:
    from segdec.engines.tensorflow import TensorFlowEngine

    run = TensorFlowEngine.infer

    def infer(engine: Any, images: NDArray[np.uint8]) -> Logits:
        """The first pixel decides."""
        known = {110: 0.2, 111: 0.211}
        surface = [[0.11, known.get(pixel, 0.3)] for pixel in images[:, 0, 0, 0].tolist()]
        return replace(run(engine, images), surface=np.array(surface, np.float32))

    set_trained(artifact_copy, surface_training)
    with pytest.raises(ArtifactError, match=r"returns a surface of shape None\. Expected \(1, 2\)"):
        Predictor.load(artifact_copy)
    monkeypatch.setattr(TensorFlowEngine, "infer", infer)
    for name, level in {"like": 110, "unlike": 111, "other": 112}.items():
        image = np.full((32, 48), 110, np.uint8)
        image[0, 0] = level
        cv2.imwrite(f"{name}.png", image)
    words = ("--model", artifact_copy, "--threshold", "1")
    code, rows, err = predict("like.png", "unlike.png", "other.png", *words)
    assert code == 1 and [row[1] for row in rows[-3:]] == ["good", "review", "NOT_INSPECTED"]
    assert "warning: unlike.png: unlike_training: of another part or surface" in err
    assert "The photograph is of another part or surface than those of the training" in err
    code, rows, err = predict("other.png", *words, "--unlike-training", "warn")
    assert code == 0 and rows[-1][1] == "review"
    assert "other.png: unlike_training: of another part or surface" in err
    predictor = Predictor.load(artifact_copy)
    photographs = [read_image(Path(f"{name}.png")).pixels for name in ("like", "unlike", "other")]
    found = [predictor.compare(each) for each in photographs]
    part = "of another part or surface than those of the training"
    assert [(each.reason, each.refused) for each in found] == [(None, False), (part, False), (part, True)]


def test_photograph_unlike_those_of_the_training_is_not_inspected(
    artifact_copy: Path, grey_training: TrainingPhotographs, predict
) -> None:
    set_trained(artifact_copy, grey_training)
    for name, level in {"first": 105, "black": 0, "last": 112}.items():
        cv2.imwrite(f"{name}.png", np.full((32, 48), level, np.uint8))
    photographs = ("first.png", "black.png", "last.png")
    code, rows, err = predict(*photographs, "--model", artifact_copy, "--out", "out")
    assert code == 1 and [row[1] == "NOT_INSPECTED" for row in rows[-3:]] == [False, True, False]
    assert "The photograph is black or almost black (lamp off, lens cap). Expected one like those of" in err
    assert not list(Path("out").glob("black*"))
    code, rows, err = predict(*photographs, "--model", artifact_copy, "--unlike-training", "warn")
    assert code == 0 and not any("NOT_INSPECTED" in row for row in rows)
    assert "warning: black.png: unlike_training: black or almost black (lamp off, lens cap)" in err
    predictor = Predictor.load(artifact_copy)
    assert [predictor.compare(read_image(Path(name)).pixels).reason for name in photographs] == [
        None,
        "black or almost black (lamp off, lens cap)",
        None,
    ]


def test_webp_is_inspected_where_its_risk_is_accepted(tiny_artifact: Path, predict) -> None:
    Path("part.webp").write_bytes(cv2.imencode(".webp", np.full((16, 24, 3), 90, np.uint8))[1].tobytes())
    code, _, err = predict("part.webp", "--model", tiny_artifact)
    assert code == 1 and "error: part.webp is a WebP file" in err
    assert predict("part.webp", "--model", tiny_artifact, "--accept-webp")[0] == 0


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
        (["--results", "found", "--out", "out"], "--results and --out were given. Use only one"),
        (["--ray"], "--ray needs --results"),
        (["--shard", "0/4"], "'0/4' is not a shard. Expected NUMBER/COUNT, for example 3/16"),
    ],
)
def test_wrong_option_is_one_clear_error(options: list[str], text: str, tiny_artifact: Path, predict) -> None:
    code, _, err = predict("a/part.png", "b", "--model", tiny_artifact, *options)
    assert code == 2 and text in err


def test_photograph_for_review_has_both_thresholds(
    artifact_copy: Path, predict, capsys: pytest.CaptureFixture[str]
) -> None:
    forge(artifact_copy, thresholds={"score": 0.999, "mask": 0.5, "review": 0.0})
    command = ["a/part.png", "b/part.png", "--model", str(artifact_copy)]
    assert main(["predict", *command, "--out", "out"]) == 0
    output = capsys.readouterr()
    heading, *rows = output.out.splitlines()
    assert [(row.split()[1], row.split()[3]) for row in rows] == [("review", "0.000-0.999")] * 2
    assert len({row.index("0.000-0.999") + 11 for row in rows} | {heading.index("threshold") + 9}) == 1
    assert output.err == "FOR REVIEW: 2 of 2 photographs. A person must check them.\n"
    assert len(found("out")) == 4
    code, rows, err = predict(*command, "--threshold", "1")
    assert (code, [row[1:4:2] for row in rows[1:]], err) == (0, [["good", "1.000"]] * 2, "")


def test_progress_is_shown_only_on_a_terminal(tiny_artifact: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_png(Path("b/more.png"), np.zeros((16, 16, 1), np.uint8))
    for terminal in (True, False):
        stderr = io.StringIO()
        monkeypatch.setattr(stderr, "isatty", lambda terminal=terminal: terminal)
        monkeypatch.setattr(sys, "stderr", stderr)
        assert main(["predict", "a", "b", "--model", str(tiny_artifact)]) == 0
        assert ("0/4" in stderr.getvalue()) == terminal == bool(stderr.getvalue())


# === A service ===


def test_service_answers_as_an_artifact_does(stub_service, service_url: str, predict) -> None:
    pixels = np.full((5, 8, 1), 20, np.uint8)
    pixels[1:3, 2:6] = 204  # 0.8
    write_png(Path("spot.png"), pixels)
    Path("text.png").write_text("no picture")
    images = ["spot.png", "text.png", "none.png"]
    code, rows, err = predict(*images, "--url", service_url, "--out", "out")
    missed = [[name, "NOT_INSPECTED", "-", "-", "-"] for name in images[1:]]
    assert (code, rows) == (1, [HEADINGS, ["spot.png", "spot", "0.800", "0.500", "1"], *missed])
    warning, refused, missing, count = err.splitlines()
    assert count.startswith("NOT INSPECTED: 2 of 3 photographs.")
    assert warning == "warning: spot.png: it is a stub"
    assert refused.startswith("error: text.png: The request body is not an image of a known type")
    assert refused.endswith("(422 unsupported_type, request of-the-stub)")
    assert missing.startswith("error: none.png cannot be read")
    assert found("out") == ["spot_mask.png", "spot_overlay.png"]
    mask = np.where(pixels[..., 0] > 127, 255, 0)
    np.testing.assert_array_equal(read_mask(Path("out/spot_mask.png")), mask)
    assert [path for path, _ in stub_service.requests] == ["/v1/models", "/v1/predict", "/v1/predict"]
    stub_service.mask_classes = True
    assert predict("spot.png", "--url", service_url, "--out", "classes")[0] == 0
    classes = read_image(Path("classes/spot_classes.png")).pixels[..., 0]
    np.testing.assert_array_equal(classes, mask // 255)
    np.testing.assert_array_equal(read_mask(Path("classes/spot_mask.png")), mask)


def test_service_is_asked_for_the_model_and_with_the_key(
    stub_service, service_url: str, monkeypatch: pytest.MonkeyPatch, predict
) -> None:
    stub_service.key = "k1"
    Path("key").write_text("k1\n")
    ask = ["a/part.png", "--url", service_url]
    named = ["--model-name", "parts", "--version", "stable", "--threshold", "0.75"]
    code, rows, _ = predict(*ask, *named, "--api-key-file", "key")
    assert (code, rows[1][3]) == (0, "0.750")
    assert stub_service.requests[-1][0] == "/v1/models/parts/versions/stable/predict"
    monkeypatch.setenv("SEGDEC_API_KEY", "k1")
    assert predict(*ask)[0] == 0
    monkeypatch.setenv("SEGDEC_API_KEY", "k2")
    code, _, err = predict(*ask)
    assert code == 2 and f"error: {service_url} rejects the key in $SEGDEC_API_KEY. " in err
    monkeypatch.delenv("SEGDEC_API_KEY")
    expected = "requires an API key. Pass it with --api-key-file FILE. (401 unauthorized"
    assert f"error: {service_url} {expected}" in predict(*ask)[2]


@pytest.mark.slow
def test_service_needs_no_tensorflow(service_url: str) -> None:
    arguments = ["predict", str(Path("a/part.png").absolute()), "--url", service_url]
    code = (
        "import sys; sys.modules['tensorflow'] = sys.modules['PIL'] = None\n"
        f"from segdec.__main__ import main; sys.exit(main({arguments}))"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=root)
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
def test_conflicting_options(options: list[str], text: str, predict) -> None:
    Path("empty").write_text("\n")
    code, _, err = predict("a/part.png", *options)
    assert code == 2 and text in err


def test_white_level_of_the_model_is_used_locally_and_remotely(
    artifact_copy: Path, service_url: str, predict
) -> None:
    forge(artifact_copy, input={"white_level": 4095})
    Path("deep.png").write_bytes(
        cv2.imencode(".png", np.full((16, 24), 3276, np.uint16))[1].tobytes()
    )  # 12 bits
    code, _, err = predict("deep.png", "--model", artifact_copy)
    assert code == 0, err
    code, rows, err = predict("deep.png", "--url", service_url, "--out", "out")
    assert (code, rows[1][1:3]) == (0, ["spot", "0.800"]), err
    assert Path("out/deep_overlay.png").exists()


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
