"""`segdec plan`, and `segdec predict --plan`."""

import json
from pathlib import Path

import numpy as np
import pytest

from segdec.__main__ import main
from segdec.images import read_image, write_png
from tests.forged_artifact import forge

PLAN = """
name = "part"
[photograph]
width = 48
height = 32
mm_per_px = 0.1
[otherwise]
outside_zones = "note"
unexplained = "review"
[zones.left]
rectangle = { corner = [0, 0], width = 24, height = 32 }
rules = [{ then = "accept" }]
[zones.corner]
circle = { center = [40, 8], radius = 6 }
ignored = true
"""
ERRORS = {"length": [1, 1], "width": [1, 1], "area": [1, 1], "defects": 9}


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.toml").write_text(PLAN)
    pixels = np.random.default_rng(0).integers(0, 256, (32, 48, 1), dtype=np.uint8)
    write_png(Path("part.png"), pixels)
    write_png(Path("other.png"), pixels[:30])


@pytest.fixture
def run(capsys):
    """Runs `segdec`; returns its exit code and what it prints on stdout and stderr."""

    def run(*arguments):
        try:
            code = main(list(map(str, arguments)))
        except SystemExit as error:
            code = error.code
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def defective(artifact_copy: Path) -> Path:
    """A model that calls each photograph defective, and each pixel of its mask."""
    forge(artifact_copy, thresholds={"score": 0.0, "mask": 0.0}, size_errors=ERRORS)
    return artifact_copy


def test_check_prints_the_plan_and_draws_its_zones(defective, run):
    code, out, err = run("plan", "check", "plan.toml", "--model", defective)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "part: photographs of 48 × 32 px, 4.8 × 3.2 mm at 0.1 mm per px",
        "left: 50 % of the photograph",
        "left: any defect: accept",
        "corner: ignored, 7.29 % of the photograph",
        "corner: a defect that is completely inside and touches no other zone: accept",
        "outside all zones: any defect: accept and note",
        "defective by its score, but no mask score reaches the threshold: for review",
        "The model finds: defect.",
        "Sizes of this model were compared with 9 masks of its training:",
    ]
    assert run("plan", "check", "plan.toml", "--photograph", "part.png", "--out", "zones.png")[0] == 0
    drawn = read_image(Path("zones.png")).pixels
    assert drawn.shape == (32, 48, 3)
    assert len({tuple(pixel) for row in drawn for pixel in row if len(set(pixel)) > 1}) >= 1


def test_check_says_what_a_model_can_measure(defective, run):
    Path("plan.toml").write_text(
        PLAN.replace("then", 'longer_than = "1 mm", then').replace("accept", "reject")
    )
    forge(defective, size_errors=ERRORS | {"length": [0.5, 2.5]})
    _, out, _ = run("plan", "check", "plan.toml", "--model", defective)
    expected = "for review from a measured length of about 0.4 mm, certain from 2 mm"
    assert out.splitlines()[-1] == f"left: any defect longer than 1 mm: reject; {expected}"


def test_a_plan_for_photographs_of_another_size(defective, run):
    trained = {"heights": [100, 100], "widths": [200, 200], "aspects": [2, 2]}
    forge(defective, training_photographs=trained)
    code, _, err = run("plan", "check", "plan.toml", "--model", defective)
    assert code == 2
    assert "for photographs of 48 × 32 px, but the model was trained on 200 × 100 to 200 × 100 px" in err


def test_check_says_if_sizes_are_unknown(artifact_copy, run):
    _, out, _ = run("plan", "check", "plan.toml", "--model", artifact_copy)
    assert "were not compared with masks" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["missing.toml"],
            "The plan missing.toml cannot be read: No such file or directory. Expected a TOML",
        ),
        (["plan.toml", "--out", "zones.png"], "Only one of --photograph and --out was given"),
        (
            ["plan.toml", "--photograph", "other.png", "--out", "z.png"],
            "other.png has 48 × 30 px. Expected 48 × 32",
        ),
        (
            ["plan.toml", "--photograph", "part.png", "--out", "no/z.png"],
            "--out no/z.png cannot be written: No such",
        ),
        (["plan.toml", "--model", "nothing"], "nothing"),
    ],
)
def test_check_reports_errors_in_one_line(arguments, message, run):
    code, _, err = run("plan", "check", *arguments)
    assert code == 2
    assert message in err
    assert len(err.splitlines()) == 1


def test_schema(run):
    code, out, _ = run("plan", "schema")
    assert code == 0
    assert json.loads(out)["title"] == "Plan"


def test_a_plan_decides_about_a_photograph(defective, run):
    code, out, err = run(
        "predict", "part.png", "other.png", "--model", defective, "--plan", "plan.toml", "--out", "out"
    )
    headings, part, other = out.splitlines()
    assert code == 1
    assert headings.split() == ["image", "label", "score", "threshold", "regions", "reason"]
    assert part.split()[:2] == ["part.png", "good"]
    assert part.endswith("all defects are within the limits: accept")
    assert other.split()[:2] == ["other.png", "NOT_INSPECTED"]
    assert "The photograph has 48 × 30 px, but the plan 'part' is for 48 × 32 px" in err
    assert "The plan changed 1 of 2 verdicts: 1 from defect to good." in err
    assert sorted(path.name for path in Path("out").iterdir()) == ["part_mask.png", "part_overlay.png"]
    Path("plan.toml").write_text(
        PLAN.replace("then", 'longer_than = "1 mm", then').replace("accept", "reject")
    )
    _, out, err = run("predict", "part.png", "--model", defective, "--plan", "plan.toml")
    assert out.splitlines()[1].split()[1] == "defect"
    assert "left: length of defect " in out and ", limit 1 mm: reject" in out
    assert "changed" not in err


def test_results_of_another_plan_need_another_folder(defective, run):
    arguments = ["predict", "part.png", "--model", defective, "--results", "found", "--plan", "plan.toml"]
    code, out, _ = run(*arguments)
    assert (code, out) == (0, "1 photographs, 0 of them done before: 1 good\n")
    import pyarrow.parquet as pq

    [row] = pq.read_table("found").to_pylist()
    assert (row["label"], row["model_label"], row["severity"]) == ("good", "defect", "accept")
    assert row["reason"] == "all defects are within the limits: accept"
    Path("plan.toml").write_text(PLAN + "# a comment does not change it\n")
    assert run(*arguments)[0] == 0
    Path("plan.toml").write_text(PLAN.replace("accept", "note"))
    code, _, err = run(*arguments)
    assert code == 2
    assert "Expected one model per folder" in err


@pytest.mark.parametrize("plan", ["plan.toml", "missing.toml"])
def test_a_plan_is_not_for_a_service(plan, run):
    code, _, err = run("predict", "part.png", "--url", "http://127.0.0.1:9", "--plan", plan)
    assert code == 2
    assert "--plan is only for --model" in err


def test_scale_prints_a_section_of_a_plan(run):
    from tests.segdec.plan.boards import COLUMNS, OBLIQUE, ROWS, checkerboard

    write_png(Path("board.png"), checkerboard(OBLIQUE))
    arguments = ["plan", "scale", "board.png", "--squares", f"{COLUMNS}x{ROWS}", "--square-mm", "10"]
    code, out, err = run(*arguments)
    assert (code, err) == (0, "")
    zone = "[zones.all]\nrectangle = { corner = [0, 0], width = 800, height = 600 }\n"
    Path("oblique.toml").write_text('name = "oblique"\n' + out + zone)
    code, out, _ = run("plan", "check", "oblique.toml")
    assert code == 0
    assert "photographs of 800 × 600 px, in perspective" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["part.png", "--squares", "9x6", "--square-mm", "5"], "The board of 9 × 6 squares was not found"),
        (
            ["part.png", "--squares", "9x6", "--square-mm", "5", "--charuco", "DICT_4X4_50"],
            "Only one of --charuco",
        ),
        (["part.png", "--squares", "3x6", "--square-mm", "5"], "with 12 inner corners or more"),
        (["part.png", "--squares", "9x6", "--square-mm", "0"], "Expected a number from 0 to 999"),
    ],
)
def test_scale_reports_errors(arguments, message, run):
    code, _, err = run("plan", "scale", *arguments)
    assert code == 2
    assert message in err
