import base64
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.serving.page_user import PageUser, paste_region
from benchmarks.serving.page_workflow import (
    MARKER,
    Inspected,
    Step,
    Workflow,
    describe_inspections,
    format_table,
    main,
    page_file,
    select_photographs,
    truth_finder,
)
from benchmarks.serving.studio_programs import running_studio
from datasets.layouts.toy import write_toy
from datasets.sample import DataSetItem
from segdec.errors import ConfigError
from segdec.images import encode_png


def items(groups: int) -> list[DataSetItem]:
    """Groups of four photographs, of which the last is defective."""
    return [
        DataSetItem(
            name=f"kos{group:02}/Part{part}",
            image_file=Path(f"kos{group:02}/Part{part}.jpg"),
            mask_file=None,
            label=int(part == 3),
            group=f"kos{group:02}",
        )
        for group in range(groups)
        for part in range(4)
    ]


def test_photographs_of_a_group_are_never_given_and_held_out():
    selection = select_photographs(items(8), 18, seed=0)
    assert len(selection.given) == 18
    assert len(selection.held_out) == 12  # the last two of the fifth group are not used
    assert not {one.group for one in selection.given} & {one.group for one in selection.held_out}
    assert selection == select_photographs(items(8), 18, seed=0)
    assert selection != select_photographs(items(8), 18, seed=1)


def test_too_few_photographs_are_an_error():
    with pytest.raises(ConfigError, match="Of 8 given photographs 2 are defective"):
        select_photographs(items(8), 8, seed=0)
    with pytest.raises(ConfigError, match="Of 0 held-out photographs"):
        select_photographs(items(4), 16, seed=0)


def test_names_on_the_pages_are_those_of_the_files(tmp_path):
    (tmp_path / "Part0.jpg").write_bytes(b"photograph")
    item = replace(items(1)[0], image_file=tmp_path / "Part0.jpg")
    assert page_file(item) == ("kos00_Part0.jpg", b"photograph")
    assert truth_finder([item])("kos00_Part0") is None
    with pytest.raises(ConfigError, match="'kos00/Part3' is defective and has no mask"):
        truth_finder(items(1))


def test_the_region_of_an_answer_is_put_into_the_mask():
    png = base64.b64encode(encode_png(np.array([[0, 1, 1]], np.uint8))).decode()
    mask = paste_region((3, 5), {"left": 2, "top": 1, "png": png})
    assert np.argwhere(mask).tolist() == [[1, 3], [1, 4]]
    assert not paste_region((3, 5), {"left": 0, "top": 0, "png": None}).any()


def test_inspections_are_described_by_hand():
    inspected = [
        Inspected(True, "defect", 0.9),
        Inspected(False, "review", 0.6),
        Inspected(True, "good", 0.4),
        Inspected(False, "good", 0.1),
        Inspected(True, None, None),
        Inspected(False, None, None),
    ]
    assert describe_inspections(inspected) == (  # precision 1/1 and 2/3; 3 of 4 pairs in order
        "6 photographs, of which 2 (1 defective) are rejected as unlike the training; of the others AP "
        "0.833, AUROC 0.750; missed 1 of 2 defective, not passed 1 of 2 good"
    )


def test_a_step_counts_its_own_clicks_and_keys_and_the_table_adds_those_of_pages():
    user = PageUser(None)
    workflow = Workflow(user)
    with workflow.step("label", "`/label`") as step:
        user.clicks, user.keys = 3, 40
        step.result = "40 good"
    with workflow.step("train", "`/train`"):
        user.clicks += 2
    with workflow.step("inspect", "API", by_page=False):
        pass
    workflow.steps[0].seconds, workflow.steps[1].seconds, workflow.steps[2].seconds = 90, 300, 60
    lines = format_table(workflow.steps).splitlines()[2:]
    assert lines == [
        "| label | `/label` | 1.5 | 3 | 40 | 40 good |",
        "| train | `/train` | 5.0 | 2 | 0 |  |",
        "| **all steps on pages** |  | 6.5 | 5 | 40 |  |",
        "| inspect | API | 1.0 | – | – |  |",
    ]
    assert Step("a", "b").cells()[3:5] == ["–", "–"]


def test_a_folder_with_files_and_missing_weights_are_errors(tmp_path):
    (tmp_path / "old.txt").touch()
    with pytest.raises(ConfigError, match="has files"), running_studio(tmp_path, None):
        pass
    with (
        pytest.raises(ConfigError, match="does not exist"),
        running_studio(tmp_path / "new", tmp_path / "weights"),
    ):
        pass


def test_a_file_without_markers_is_rejected_before_the_day_begins(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("shutil.which", lambda name: name)
    write_toy(tmp_path / "toy", 18, size=32)
    page = tmp_path / "page.md"
    page.write_text("no table")
    with pytest.raises(SystemExit) as ended:
        main([str(tmp_path / "toy"), "--folder", str(tmp_path / "new"), "--write", str(page)])
    assert ended.value.code == 2
    assert MARKER in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
