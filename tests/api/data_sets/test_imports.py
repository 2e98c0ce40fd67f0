"""Archives become photographs with annotations; nothing is lost, and nobody's label is overwritten."""

import asyncio
import json
import shutil
import zipfile
from dataclasses import replace

import cv2
import numpy as np
import pytest
from sqlalchemy import select

from api.data_sets import archive_import
from api.data_sets.annotations import NewAnnotation, annotate
from api.data_sets.archive_import import ArchiveImport, ArchiveOptions
from api.data_sets.definitions import create_data_set, show_data_set
from api.data_sets.import_program import ProgramLimits
from api.data_sets.imports import list_imports, show_import
from api.data_sets.job_schemas import ImportResult
from api.data_sets.photographs import PhotographFilters, list_photographs, remove_photograph
from api.data_sets.tables import data_set_photographs
from api.data_sets.unanswered_archives import UnansweredArchives
from api.data_sets.version_export import export_version
from api.data_sets.versions import find_exported, read_manifest, take_snapshot
from api.database.database import write_transaction
from api.errors import RequestError
from api.jobs.stored_jobs import finish_job
from api.messages.causes import Cause, JobError
from api.record.tables import audit
from datasets.__main__ import main
from datasets.loading import load_dataset
from segdec.annotation_content import AnnotationContent
from segdec.images import decode_mask_values
from tests.api.data_sets.filled_data_set import CLASSES, EVERY_FIELD, NOW
from tests.api.data_sets.filled_data_set import mask_of as pixels_of
from tests.api.data_sets.local_store import LocalStore
from tests.api.record.databases import both_databases

pytestmark = pytest.mark.usefixtures("program_in_this_process")
OPTIONS = ArchiveOptions(
    with_labels=True,
    max_bytes=10**9,
    max_pixels=10**6,
    limits=ProgramLimits(seconds=300, memory_bytes=4 * 10**9),
    free_share=0.0,
)


def png(seed, size=(20, 12)):
    pixels = np.random.default_rng(seed).integers(0, 256, size[::-1], np.uint8)
    return cv2.imencode(".png", pixels)[1].tobytes()


def mask(value=255, rows=(4, 5)):
    pixels = np.zeros((12, 20), np.uint8)
    pixels[list(rows), 5:8] = value
    return cv2.imencode(".png", pixels)[1].tobytes()


def labelme(name, *shapes):
    drawn = [
        {"label": label, "shape_type": "rectangle", "points": [[left, 2], [left + 3, 6]]}
        for label, left in shapes
    ]
    content = {"imagePath": name, "imageHeight": 12, "imageWidth": 20, "shapes": drawn}
    return json.dumps(content).encode()


PARTS = {
    "parts/good/a.png": png(1),
    "parts/dent/b.png": png(2),
    "parts/masks/dent/b.png": mask(),
    "parts/Scratch/c.png": png(3),
    "parts/masks/Scratch/c.png": mask(),
    "parts/images/d.png": png(4),
    "parts/images/d.json": labelme("d.png", ("hole", 1), ("dent", 6), ("__ignore__", 12)),
}


def write_archive(folder, entries):
    with zipfile.ZipFile(folder / archive_import.ARCHIVE, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


@pytest.fixture
def run(filled, tmp_path):
    """Imports an archive of these entries; returns its result."""
    store = LocalStore(filled.engine, filled.stored)

    def run(entries, options=OPTIONS, number=0):
        folder = tmp_path / f"import{number}"
        folder.mkdir(parents=True)
        write_archive(folder, entries)
        unanswered = UnansweredArchives(tmp_path / "unanswered", options.max_bytes)
        job = ArchiveImport(store, filled.id, folder, options, unanswered, "parts.zip", "Ada", lambda: NOW)
        job.id = number
        asyncio.run(job.run())
        return job.result

    return run


def photographs(filled):
    page = filled.read(list_photographs, PhotographFilters(), 0, 500, NOW)
    return {one.name: one for one in page.photographs}


def mask_of(filled, name):
    with filled.engine.connect() as connection:
        where = data_set_photographs.c.name == name
        digest = connection.execute(select(data_set_photographs.c.mask).where(where)).scalar_one()
    return None if digest is None else decode_mask_values(filled.stored.get(bytes(digest)), name, classes=())


def splits_of(filled):
    return {name: one.split for name, one in photographs(filled).items()}


def test_the_split_of_an_archive_is_stored(filled, run):
    lines = b"train good/a\ntest dent/b\nfold_3 images/d\n"
    assert run({**PARTS, "parts/splits.txt": lines}).added == 4
    assert splits_of(filled) == {
        "good/a": "train",
        "dent/b": "test",
        "images/d": "fold_3",
        "Scratch/c": "left_out",
    }


def test_a_version_has_the_split_of_a_published_set(filled, run, tmp_path):
    """What `fit` reads from the folder and from the version is in the same split."""
    entries, empty = {}, mask(value=0)
    for number in range(16):
        stem = f"{'train' if number < 10 else 'test'}/{10000 + number}"
        entries |= {f"{stem}.png": png(number), f"{stem}_GT.png": mask() if number % 2 else empty}
    assert run(entries).labelled == 16
    version = read_manifest(filled.read(take_snapshot).manifest.data)
    write_archive(tmp_path, entries)
    main(["unpack", str(tmp_path / archive_import.ARCHIVE), str(tmp_path / "own")])
    published = {one.name: one.split for one in load_dataset("kolektor2", tmp_path / "own").items}
    assert {one["name"]: one["split"] for one in version} == published
    assert set(published.values()) == {"train", "val", "test"}


def test_without_a_published_split_none_is_stored(filled, run):
    assert run(PARTS).added == 4
    assert set(splits_of(filled).values()) == {None}
    lines = b"train good/a\ntest dent/b\n"
    again = run({**PARTS, "parts/splits.txt": lines}, number=1)
    assert (again.added, again.present) == (0, 4)
    assert splits_of(filled)["dent/b"] == "test"


DIVIDED = {
    "manifest.csv": b"image,label,group\na.png,good,7\nb.png,dent,7\nc.png,good,8\n",
    **{f"{name}.png": png(number) for number, name in enumerate("abc")},
}


def test_files_of_the_machine_that_a_manifest_names_are_left_out(run, tmp_path):
    for name, content in (("one", png(7)), ("two", png(8)), ("mask", mask())):
        (tmp_path / f"{name}.png").write_bytes(content)
    lines = [f"{tmp_path}/one.png,dent,", "../../two.png,dent,", "b.png,dent,../../mask.png"]
    manifest = "\n".join(["image,label,mask", "a.png,good,", *lines, "c.png,dent,m.png"])
    entries = {f"{name}.png": png(number) for number, name in enumerate("abc")}
    result = run({"manifest.csv": manifest.encode(), "m.png": mask(), **entries})
    assert (result.added, result.left_out) == (2, 3)
    assert {one.cause.code for one in result.problems} == {"file_outside"}


def test_a_problem_does_not_show_whether_a_file_of_the_machine_exists(run, tmp_path):
    (tmp_path / "there.png").write_bytes(png(7))
    (tmp_path / "there.txt").write_text("no photograph")
    (tmp_path / "there").mkdir()
    outside = ["there.png", "there.txt", "there", "missing.png", "missing/x.png"]
    lines = [f"../../{name},dent,,{box}" for name in outside for box in ("", '"1,1,2,2"')]
    lines += [
        f"b.png,dent,../../{name}," for name in ("there.png", "there.jpg", "missing.png", "missing.jpg")
    ]
    lines += [f"{tmp_path}/{name},dent,," for name in ("there.png", "missing.png")]
    manifest = "\n".join(["image,label,mask,box", "a.png,good,,", *lines])
    result = run({"manifest.csv": manifest.encode(), "a.png": png(1), "b.png": png(2)})
    assert (result.added, len(result.problems)) == (1, len(lines))
    assert {one.cause.code for one in result.problems} == {"file_outside"}


def test_a_path_through_another_folder_does_not_show_whether_it_exists(run, tmp_path):
    (tmp_path / "there").mkdir()
    back = "../import0/archive"
    lines = [f"../../there/{back}/b.png,dent", f"../../missing/{back}/c.png,dent"]
    manifest = "\n".join(["image,label", "a.png,good", *lines])
    result = run({"manifest.csv": manifest.encode(), **{f"{name}.png": png(ord(name)) for name in "abc"}})
    assert (result.added, result.problems) == (3, [])


def test_good_photographs_of_a_manifest_need_no_list_of_classes(run, filled):
    result = run({"manifest.csv": b"image,label\na.png,good\n", "a.png": png(1)})
    assert (result.added, result.labelled, result.problems) == (1, 1, [])
    run({"good/a.png": png(1)}, number=1)
    assert filled.read(show_data_set).classes == ["scratch", "dent"]


def test_an_error_names_files_as_the_archive_has_them(run):
    manifest = b"image,label\na.png,dent\n"
    with pytest.raises(JobError, match=r"The manifest manifest\.csv has these labels"):
        run({"manifest.csv": manifest, "a.png": png(1)})


@pytest.mark.parametrize(
    "lines", [b"train a\ntest b\nval c\n", b"train nothing\n", b"../x a\n", b"\xff\xfe\0", b""]
)
def test_an_invalid_split_file_is_left_out(filled, run, lines):
    result = run({**DIVIDED, "splits.txt": lines})
    assert (result.added, result.labelled) == (3, 3)
    assert splits_of(filled) == {"a": None, "b": None, "c": None}
    assert [one.part for one in photographs(filled).values()] == ["7", "7", "8"]


@both_databases
def test_labels_and_masks_of_an_archive_are_stored(filled, run):
    result = run(PARTS)
    assert (result.found, result.added, result.labelled, result.left_out) == (4, 4, 4, 0)
    assert result.problems == []
    found = photographs(filled)
    labels = {name: (one.label, one.has_mask) for name, one in found.items()}
    assert labels == {
        "good/a": ("good", False),
        "dent/b": ("dent", True),
        "Scratch/c": ("scratch", True),  # the class of the data set, in its case
        "images/d": ("dent", True),
    }
    assert filled.read(show_data_set).classes == ["scratch", "dent", "hole"]
    expected = np.zeros((12, 20), np.uint8)
    expected[2:6, 1:4], expected[2:6, 6:9], expected[2:6, 12:15] = 3, 2, 255
    np.testing.assert_array_equal(mask_of(filled, "images/d"), expected)
    assert set(np.unique(mask_of(filled, "Scratch/c"))) == {0, 1}
    assert filled.stored.get(bytes.fromhex(found["good/a"].sha256)) == PARTS["parts/good/a.png"]


LEFT_OUT: set[str] = set()
"""Fields of annotations that training does not read, so versions do not have them."""


def test_each_field_of_an_annotation_is_in_the_archive_of_a_version(filled, run, tmp_path):
    with write_transaction(filled.engine) as connection:
        other = replace(filled, id=create_data_set(connection, "Others", CLASSES, "Ada", NOW))
    other.annotate(other.add(1).id, mask=pixels_of((1, 2, 3)), **EVERY_FIELD.model_dump())
    other.make_version()
    version = other.read(find_exported, 1)
    (tmp_path / "version.zip").write_bytes(b"".join(export_version(version, "folder", other.stored)))
    with zipfile.ZipFile(tmp_path / "version.zip") as archive:
        run({name: archive.read(name) for name in archive.namelist()})
    (imported,) = photographs(filled).values()
    expected = EVERY_FIELD.model_dump(exclude=LEFT_OUT)
    assert imported.model_dump(include=expected.keys()) == expected


def test_the_same_archive_again_changes_nothing(filled, run):
    run(PARTS)
    before = photographs(filled)
    result = run(PARTS, number=1)
    assert (result.found, result.added, result.present, result.labelled, result.kept) == (4, 0, 4, 0, 0)
    assert photographs(filled) == before


@both_databases
def test_labels_that_people_gave_stay_and_removed_photographs_return(filled, run):
    run(PARTS)
    found = photographs(filled)
    own = NewAnnotation(AnnotationContent(label="good"), None, "drawn", "Ben", NOW)
    filled.write(annotate, found["dent/b"].id, own, found["dent/b"].annotation_id)
    filled.write(remove_photograph, found["good/a"].id, "Ben", NOW)
    result = run(PARTS, number=1)
    assert (result.present, result.restored, result.kept) == (3, 1, 1)
    assert photographs(filled)["dent/b"].label == "good"


def test_photographs_with_problems_are_left_out_and_named(run):
    entries = {**PARTS, "parts/good/e.png": b"no picture", "parts/dent/f.png": png(6)}
    result = run({**entries, "parts/masks/dent/f.png": mask(value=0)})
    assert (result.found, result.left_out) == (4, 2)
    texts = {problem.name: problem.text for problem in result.problems}
    assert texts.keys() == {"good/e", "dent/f"}
    assert texts["good/e"].startswith("parts/good/e.png is not an image")
    causes = {problem.name: problem.cause for problem in result.problems}
    mask_path = {"mask": "parts/masks/dent/f.png"}  # below the root of the archive
    assert causes["good/e"] == Cause(code="unsupported_type")
    assert causes["dent/f"] == Cause(code="mask_empty", values=mask_path)


def test_a_label_that_may_mean_good_is_no_class_of_the_data_set(filled, run):
    entries = {**PARTS, "parts/images/e.png": png(5), "parts/images/e.json": labelme("e.png", ("no burr", 1))}
    result = run({**entries, "parts/no damage/f.png": png(6)})
    assert [one.cause for one in result.problems] == [
        Cause(code="unclear_label", values={"label": "no burr"})
    ]
    assert filled.read(show_data_set).classes == ["scratch", "dent", "hole"]
    assert photographs(filled)["no damage/f"].label == "good"


def test_a_manifest_may_state_that_a_label_is_a_class(filled, run):
    rows = b"image,label,class_mask\na.png,good,\nb.png,no burr,m.png\n"
    entries = {
        "a.png": png(1),
        "b.png": png(2),
        "m.png": mask(value=2),
        "classes.txt": b"good\ndent\nno burr\n",
    }
    assert run({**entries, "manifest.csv": rows}).problems == []
    assert filled.read(show_data_set).classes == ["scratch", "dent", "no burr"]
    assert {*mask_of(filled, "b").ravel().tolist()} == {0, 3}


def test_archive_without_labels(filled, run):
    result = run({"a.png": png(1), "dent/b.png": png(2)}, replace(OPTIONS, with_labels=False))
    assert (result.found, result.added, result.labelled) == (2, 2, 0)
    assert {name: one.label for name, one in photographs(filled).items()} == {"a": None, "dent/b": None}
    assert filled.read(show_data_set).classes == ["scratch", "dent"]


def test_photographs_of_a_part_stay_together(filled, run):
    entries = {f"kos{item}/Part{n}.jpg": png(10 * item + n) for item in (10, 11) for n in (0, 1)}
    entries |= {f"kos{item}/Part{n}_label.bmp": mask(255 * (n & item)) for item in (10, 11) for n in (0, 1)}
    run(entries)
    assert {name: one.part for name, one in photographs(filled).items()} == {
        f"kos{item}/Part{n}": f"kos{item}" for item in (10, 11) for n in (0, 1)
    }


# === The job ===


def start(filled, folder):
    """Starts an import of `PARTS`; returns the job and its id."""
    folder.mkdir()
    write_archive(folder, PARTS)
    store, unanswered = LocalStore(filled.engine, filled.stored), UnansweredArchives(folder, 0)
    job = ArchiveImport(store, filled.id, folder, OPTIONS, unanswered, "parts.zip", "Ada")
    with write_transaction(filled.engine) as connection:
        return job, job.start_row(connection, NOW)


def test_a_started_import_is_shown_and_in_the_audit_log(filled, tmp_path):
    job, number = start(filled, tmp_path / "import")
    shown = filled.read(show_import, number, NOW)
    assert (shown.name, shown.state, shown.result) == ("parts.zip", "running", ImportResult())
    asyncio.run(job.run())
    with write_transaction(filled.engine) as connection:
        finish_job(connection, number, "done", job.progress, None, NOW)
    (shown,) = filled.read(list_imports, NOW).imports
    assert (shown.name, shown.state, shown.result) == ("parts.zip", "done", job.result)
    with pytest.raises(RequestError, match="has no import 999"):
        filled.read(show_import, 999, NOW)
    with filled.engine.connect() as connection:
        what = audit.c.what == "import photographs"
        entry = connection.execute(select(audit).where(what)).mappings().one()
    assert (entry["who"], json.loads(entry["after"])) == (
        "Ada",
        {"data_set": "Brackets", "import": number, "name": "parts.zip"},
    )


# === The disk ===


def limit_disk(monkeypatch, free):
    """A disk of 10 MB, of which `free()` bytes are free."""
    usage = lambda _: shutil._ntuple_diskusage(10_000_000, 0, free())  # noqa: E731
    monkeypatch.setattr(shutil, "disk_usage", usage)


def test_files_leave_the_free_share_of_the_record(run, monkeypatch):
    entries = {f"good/{number}.png": png(number, (200, 100)) for number in range(5)}
    needed = archive_import.DISK_SPACE_FACTOR * sum(map(len, entries.values()))
    limit_disk(monkeypatch, lambda: 500_000 + needed - 3)
    with pytest.raises(JobError, match=r"GB free; 0\.0 GB, 5% of it, stay free for inspections") as raised:
        run(entries, replace(OPTIONS, free_share=0.1))
    assert raised.value.cause.code == "archive_unpacked_disk"
    assert raised.value.cause.values == {"gigabytes": 0.0, "free": 0.0, "reserved": 0.0}
    limit_disk(monkeypatch, lambda: 500_000 + needed)
    assert run(entries, replace(OPTIONS, free_share=0.1), 1).added == 5


def test_an_import_ends_when_others_fill_the_disk_while_it_stores(run, filled, monkeypatch):
    free = iter([10_000_000] * 3 + [500_000])
    limit_disk(monkeypatch, lambda: next(free))
    monkeypatch.setattr(archive_import, "BATCH_FILES", 2)
    with pytest.raises(JobError, match=r"The import ended before it fills the disk\..*record_free_share"):
        run({f"good/{number}.png": png(number) for number in range(5)}, replace(OPTIONS, free_share=0.1))
    assert len(photographs(filled)) == 2


def test_a_program_ends_when_it_fills_the_disk(run, monkeypatch):
    ended, free = [], iter([10_000_000, 2_000_000, 499_999])

    async def write_without_end(*_):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    limit_disk(monkeypatch, lambda: next(free))
    monkeypatch.setattr(archive_import, "run_datasets", write_without_end)
    monkeypatch.setattr(archive_import, "SPACE_INTERVAL_S", 0.0)
    with pytest.raises(JobError, match="The import ended before it fills the disk"):
        run(PARTS, replace(OPTIONS, free_share=0.1))
    assert ended == [True]
