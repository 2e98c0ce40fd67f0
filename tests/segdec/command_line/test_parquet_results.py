import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from segdec.__main__ import main
from segdec.command_line import parquet_results
from segdec.command_line.inspection_loop import NOT_INSPECTED
from segdec.command_line.inspectors import InspectedFile, MaskedPhotograph
from segdec.command_line.parquet_results import ResultFolder
from segdec.errors import ConfigError, ImageError
from segdec.images import read_image, write_png
from segdec.mask_decoding import unpack_mask
from segdec.predictor import Predictor
from segdec.schemas import MaskAnswer, RunLengths

ROOT = Path(__file__).parents[3]
MODEL = {"model": "parts 1", "threshold": None}
CLASSES = ["good", "scratch", "spot"]


def inspected(name: str, mask: np.ndarray[tuple[int, int], np.dtype[np.uint8]]) -> InspectedFile:
    pictures = MaskedPhotograph(np.zeros((*mask.shape, 1), np.uint8), mask)
    return InspectedFile(Path(name), "scratch", 0.75, 0.5, 0.25, (None,), "checked", ("dark",), pictures)


def rows(folder: Path) -> list[dict[str, object]]:
    return sorted(pq.read_table(folder).to_pylist(), key=lambda row: str(row["image"]))


def test_rows_have_decision_mask_and_error(tmp_path: Path) -> None:
    mask = np.zeros((5, 7), np.uint8)
    mask[1:3, 2:6] = 255
    with ResultFolder(tmp_path / "found", MODEL) as found:
        found.add_inspected(inspected("a.png", mask))
        found.add_inspected(inspected("b.png", mask * 0))
        found.add_failure(Path("c.png"), ImageError("no picture", code="x"))
    first, second, third = rows(tmp_path / "found")
    assert first["image"], first["label"] == ("a.png", "scratch")
    expected = {"score": 0.75, "threshold": 0.5, "review_threshold": 0.25, "regions": 1, "warnings": ["dark"]}
    expected |= {"height": 5, "width": 7, "error": None, "integrity": "checked"}
    assert expected.items() <= first.items()
    packed = RunLengths(size=(5, 7), counts=str(first["mask"]))
    answer = MaskAnswer(encoding="rle", width=7, height=5, space="input", threshold=0.5, data=packed)
    np.testing.assert_array_equal(unpack_mask(answer), mask)
    assert second["mask"] is None
    assert (third["error"], third["label"]) == ("no picture", None)
    assert found.counts == {"scratch": 2, NOT_INSPECTED: 1}


def test_each_class_has_run_lengths_of_its_own(tmp_path: Path) -> None:
    classes = np.zeros((5, 7), np.uint8)
    classes[1, 2:6], classes[4, 0] = 1, 2
    mask = np.where(classes > 0, np.uint8(255), np.uint8(0))
    file = inspected("a.png", mask)
    pictures = MaskedPhotograph(np.zeros((5, 7, 1), np.uint8), mask, None, classes, tuple(CLASSES))
    with ResultFolder(tmp_path, MODEL) as found:
        found.add_inspected(replace(file, region_labels=("scratch", "spot"), pictures=pictures))
        found.add_inspected(inspected("b.png", mask))
    first, second = rows(tmp_path)
    assert first["region_labels"] == ["scratch", "spot"]
    runs = dict(first["class_masks"])  # type: ignore[call-overload]
    data = {name: RunLengths(size=(5, 7), counts=counts) for name, counts in runs.items()}
    answer = MaskAnswer(
        encoding="class_rle", width=7, height=5, space="input", threshold=0.5, data=data, labels=CLASSES
    )
    np.testing.assert_array_equal(unpack_mask(answer), classes)
    assert (second["region_labels"], second["class_masks"]) == (None, None)


def test_existing_results_are_known_and_other_models_rejected(tmp_path: Path) -> None:
    with ResultFolder(tmp_path, MODEL) as found:
        assert found.done == set()
        found.add_failure(Path("a.png"), ImageError("no", code="x"))
        found.add_inspected(inspected("b.png", np.zeros((5, 7), np.uint8)))
    again = ResultFolder(tmp_path, MODEL)
    assert (again.done, again.not_inspected) == ({"a.png", "b.png"}, {"a.png"})
    with pytest.raises(ConfigError, match=r"written with model parts 1, .* uses model parts 2"):
        ResultFolder(tmp_path, {**MODEL, "model": "parts 2"})
    (tmp_path / "other.parquet").write_bytes(b"PAR1 not")
    with pytest.raises(ConfigError, match=r"other.parquet is not a result file"):
        ResultFolder(tmp_path, MODEL)
    pq.write_table(pa.table({"name": ["a"]}), tmp_path / "other.parquet")
    with pytest.raises(ConfigError, match=r"other.parquet is not a result file"):
        ResultFolder(tmp_path, MODEL)


def test_files_are_written_when_full_and_after_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_results, "ROWS_PER_FILE", 2)
    with pytest.raises(KeyboardInterrupt), ResultFolder(tmp_path, MODEL) as found:
        for name in ("a", "b", "c"):
            found.add_failure(Path(name), ImageError("no", code="x"))
            assert len(list(tmp_path.glob("*.parquet"))) == (name != "a")
        raise KeyboardInterrupt
    assert [row["image"] for row in rows(tmp_path)] == ["a", "b", "c"]
    assert {path.suffix for path in tmp_path.iterdir()} == {".parquet"}


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, random = tmp_path_factory.mktemp("photographs"), np.random.default_rng(2)
    for number in range(6):
        write_png(folder / f"{number}.png", random.integers(0, 256, (24, 32, 1), dtype=np.uint8))
    (folder / "broken.png").write_text("no picture")
    return folder


def predict(*arguments: object) -> int:
    return main(["predict", *map(str, arguments)])


def test_shards_together_inspect_everything_once(
    photographs: Path, tiny_artifact: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = tmp_path / "found"
    command = (photographs, "--model", tiny_artifact, "--results", found)
    codes = [predict(*command, "--shard", shard) for shard in ("1/2", "2/2")]
    assert sorted(codes) == [0, 1]  # the broken one is in one of them
    images = [row["image"] for row in rows(found)]
    assert images == sorted(map(str, photographs.iterdir()))
    capsys.readouterr()
    assert predict(*command) == 1  # nothing new, and still one of which nothing is known
    output = capsys.readouterr()
    assert output.out == "7 photographs, 7 of them done before: nothing new\n"
    assert output.err == (
        "NOT INSPECTED: 1 of 7 photographs. Hold these parts; their state is unknown.\n"
        f"The column 'error' of {found} has the reasons.\n"
    )
    assert len(rows(found)) == 7
    one = next(row for row in rows(found) if row["error"] is None)
    (expected,) = Predictor.load(tiny_artifact).predict([read_image(Path(str(one["image"]))).pixels])
    assert one["label"] == expected.label
    assert one["score"] == pytest.approx(expected.score, abs=1e-5)


@pytest.mark.slow
def test_ray_finds_the_same(photographs: Path, tiny_artifact: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    for name, flags in {"here": (), "ray": ("--ray",)}.items():
        arguments = ["predict", photographs, "--model", tiny_artifact, "--results", tmp_path / name, *flags]
        command = [sys.executable, "-m", "segdec", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        assert done.returncode == 1, done.stderr
        assert done.stdout.startswith("7 photographs, 0 of them done before: ")
    here, there = rows(tmp_path / "here"), rows(tmp_path / "ray")
    for one, other in zip(here, there, strict=True):
        assert one["score"] == pytest.approx(other["score"], abs=1e-5)
        assert {**one, "score": None} == {**other, "score": None}
    again = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert again.stdout.startswith("7 photographs, 7 of them done before: nothing new"), again.stderr
