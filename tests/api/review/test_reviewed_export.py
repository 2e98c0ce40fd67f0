"""Export of reviewed inspections as a data set for training, from both databases."""

import csv
import hashlib
import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from sqlalchemy import update

from api.__main__ import main
from api.database.database import migration_scripts, open_database, write_transaction
from api.http.mask_encoding import convert_mask
from api.record.initialization import PICTURES
from api.record.tables import inspections, pictures
from api.review.export_command import run
from datasets.loading import load_dataset
from datasets.reading import read
from datasets.reading_options import ReadingOptions
from segdec.errors import ConfigError
from segdec.images import encode_png
from segdec.imaging.run_lengths import encode_run_lengths
from segdec.schemas import MaskAnswer, RunLengths
from tests.api.conftest import PNG, ServiceClient, know_training, part_image
from tests.api.record.databases import sqlite_only

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)


class RecordedLine:
    """A service that records, with reviews that the test writes."""

    def __init__(self, client, url, folder):
        self.client, self.url, self.folder = client, url, folder
        self.sent = {}

    def inspect(self, brightness, **query):
        """Sends a picture, good up to 127; returns the id of its record."""
        picture = encode_png(part_image(brightness=brightness))
        answer = self.client.post("/v1/inspect", params=query, content=picture, headers=PNG).json()
        self.sent[answer["record_id"]] = picture
        return answer["record_id"]

    def judge(self, record_id, label, mask=None, minutes=0):
        review = {"reviewed_label": label, "reviewed_at": NOW + timedelta(minutes=minutes), "reviewer": "a"}
        review["reviewed_mask"] = None if mask is None else mask.model_dump_json()
        self.change(update(inspections).where(inspections.c.id == record_id).values(**review, revision=1))

    def change(self, statement):
        engine = open_database(self.url)
        with write_transaction(engine) as connection:
            connection.execute(statement)
        engine.dispose()

    def name(self, record_id):
        return f"reviewed/{hashlib.sha256(self.sent[record_id]).hexdigest()[:32]}"

    def export(self, out, *words):
        run(["--out", str(out), "--record-folder", str(self.folder), "--record-database", self.url, *words])
        lines = (out / "manifest.jsonl").read_text().splitlines()
        return {line["name"]: line for line in map(json.loads, lines)}


@pytest.fixture
def line(make_app, database_url, tmp_path):
    settings = {"record_folder": tmp_path / "record", "record_database": database_url}
    with ServiceClient(make_app(record="required", **settings)) as client:
        yield RecordedLine(client, database_url, tmp_path / "record")


def corrected_mask(height=24, width=40):
    mask = np.zeros((height, width), np.uint8)
    mask[8:10, 10:16] = 255
    runs = RunLengths(size=(height, width), counts=encode_run_lengths(mask))
    return MaskAnswer(encoding="rle", width=width, height=height, space="input", threshold=0.5, data=runs)


def test_reviewed_inspections_become_a_data_set(line, tmp_path, capsys):
    good = line.inspect(90)
    confirmed, drawn = (line.inspect(brightness, part_id="=A 7") for brightness in (200, 210))
    unsure, gone, _ = (line.inspect(brightness) for brightness in (140, 150, 220))
    for record_id, label in ((good, "good"), (confirmed, "scratch"), (unsure, "unsure"), (gone, "good")):
        line.judge(record_id, label)
    line.judge(drawn, "spot", corrected_mask())
    digest = hashlib.sha256(line.sent[gone]).digest()
    line.change(update(pictures).where(pictures.c.sha256 == digest).values(state="expired"))
    out = tmp_path / "reviewed"
    lines = line.export(out)
    assert capsys.readouterr().out == (
        f"Exported 3 reviewed photographs of 2 parts to {out}: 1 good, 1 scratch, 1 spot; "
        "1 with a mask by a reviewer, 1 with their label only.\n"
        "Skipped: 1 unsure, 1 whose picture is gone, 0 replaced by a later review of the same picture.\n"
    )
    for record_id in (good, confirmed, drawn):
        assert (out / lines[line.name(record_id)]["image"]).read_bytes() == line.sent[record_id]
    dataset = load_dataset("manifest", out)
    assert dataset.classes == ("good", "scratch", "spot") and dataset.problems == ()
    found = {r.name: (dataset.classes[r.label], r.supervision, r.group) for r in dataset.items}
    assert found == {
        line.name(good): ("good", "mask", line.name(good)),
        line.name(confirmed): ("scratch", "label", "=A 7"),
        line.name(drawn): ("spot", "mask", "=A 7"),
    }
    mask = read(next(record for record in dataset.items if record.mask_file)).mask
    assert np.count_nonzero(mask) == 12 and mask[8:10, 10:16].all()
    _, origin, _ = csv.DictReader((out / "inspections.csv").read_text().splitlines())
    assert (origin["name"], origin["id"], origin["part_id"]) == (
        line.name(confirmed),
        str(confirmed),
        "'=A 7",
    )


@sqlite_only
def test_the_latest_review_of_a_picture_counts(line, tmp_path):
    first, again = line.inspect(200), line.inspect(200)
    line.judge(first, "spot", minutes=2)
    line.judge(again, "good", minutes=1)
    lines = line.export(tmp_path / "one")
    assert [one["label"] for one in lines.values()] == ["spot"]
    line.judge(again, "unsure", minutes=3)
    line.judge(line.inspect(90), "good")
    assert line.name(first) not in line.export(tmp_path / "two")


@sqlite_only
def test_masks_with_classes_contain_the_index_of_the_class(line, predictor, tmp_path):
    predictor.have_classes(spot_from=13)
    record_id = line.inspect(200)
    row = line.client.post("/v1/predict?mask=class_rle", content=line.sent[record_id], headers=PNG).json()
    mask = MaskAnswer.model_validate(row["mask"])

    def export(out, label, mask):
        line.judge(record_id, label, mask)
        line.export(out)
        return read(
            load_dataset(
                "manifest", out, reading=ReadingOptions(mask_values={"scratch": 1, "spot": 2})
            ).items[0]
        )

    classes = export(tmp_path / "out", "scratch", mask).classes
    assert (classes[8:12, 10:13] == 1).all() and (classes[8:12, 13:16] == 2).all()
    plain = export(tmp_path / "plain", "spot", convert_mask(mask, "rle"))
    assert (plain.label, plain.classes) == (2, None)  # all defect pixels have the class of the photograph


@sqlite_only
def test_pictures_of_a_bucket_are_exported(make_app, bucket, database_url, tmp_path):
    folder, place = tmp_path / "record", f"s3://{bucket}/parts"
    settings = {"record_folder": folder, "record_database": database_url, "record_pictures": place}
    with ServiceClient(make_app(record="required", **settings)) as client:
        line = RecordedLine(client, database_url, folder)
        line.judge(line.inspect(90), "good")
        lines = line.export(tmp_path / "out", "--record-pictures", place)
    assert (tmp_path / "out" / lines[line.name(1)]["image"]).read_bytes() == line.sent[1]
    with pytest.raises(ConfigError, match=r"s3://.*/elsewhere contains no pictures of this record"):
        line.export(tmp_path / "none", "--record-pictures", f"s3://{bucket}/elsewhere")


@sqlite_only
def test_the_export_is_filtered_by_time_station_and_model(line, tmp_path):
    line.judge(line.inspect(90, station="a"), "good")
    line.judge(line.inspect(91, station="b"), "good")
    assert len(line.export(tmp_path / "a", "--station", "a")) == 1
    period = "--since", "2026-01-01", "--until", "2999-01-01T00:00+01:00"
    assert len(line.export(tmp_path / "since", *period)) == 2
    for words in (("--model", "other"), ("--until", "2026-01-01"), ("--since", "2999-01-01")):
        with pytest.raises(ConfigError, match="No photograph to export: 0 unsure, 0 whose picture is gone"):
            line.export(tmp_path / "none", *words)
        assert not (tmp_path / "none").exists()


@sqlite_only
def test_a_changed_picture_is_skipped_and_rows_are_read_in_pages(line, tmp_path, monkeypatch):
    monkeypatch.setattr("api.review.reviewed_export.ROWS", 1)
    records = [line.inspect(brightness) for brightness in range(60, 63)]
    for record_id in records:
        line.judge(record_id, "good")
    name = hashlib.sha256(line.sent[records[0]]).hexdigest()
    (line.folder / PICTURES / name[:2] / name).write_bytes(b"something else")
    assert set(line.export(tmp_path / "out")) == set(map(line.name, records[1:]))


@sqlite_only
def test_invalid_folders_are_rejected(line, tmp_path):
    line.judge(line.inspect(90), "good")
    with pytest.raises(ConfigError, match=r"exists\. Choose another folder"):
        line.export(tmp_path)
    line.folder = tmp_path / "elsewhere"
    with pytest.raises(ConfigError, match="contains no pictures of this record"):
        line.export(tmp_path / "out")
    with pytest.raises(ConfigError, match=r"There is no record in .*elsewhere"):
        run(["--out", str(tmp_path / "out"), "--record-folder", str(line.folder)])
    assert not line.folder.exists() and not (tmp_path / "out").exists()


def test_photographs_without_a_verdict_are_exported_with_their_review(
    line, tmp_path, predictor, grey_training, capsys
):
    like, black = know_training(predictor, grey_training)
    for number, picture in enumerate((like, black, black), 1):
        line.client.post(f"/v1/inspect?part_id={number}", content=picture, headers=PNG)
    line.judge(2, "scratch", corrected_mask(32, 48))
    line.judge(3, "unsure", minutes=-1)
    out = tmp_path / "reviewed"
    (entry,) = line.export(out).values()
    assert (entry["label"], entry["group"]) == ("scratch", "2")
    assert (out / entry["image"]).read_bytes() == black
    assert (out / "classes.txt").read_text().split() == ["scratch", "spot"]
    assert "0 unsure, 0 whose picture is gone, 1 replaced" in capsys.readouterr().out
    dataset = load_dataset("manifest", out)
    assert read(dataset.items[0]).image.shape[:2] == (32, 48)


def test_a_database_with_another_schema_is_rejected(make_database, tmp_path):
    known = migration_scripts().get_current_head()
    with pytest.raises(ConfigError, match=f"has schema None, expected {known}"):
        run(["--out", str(tmp_path / "out"), "--record-database", make_database()])
    with pytest.raises(ConfigError, match="The record's database cannot be used: "):
        run(["--out", str(tmp_path / "out"), "--record-database", "postgresql://nobody@127.0.0.1:1/none"])


@sqlite_only
def test_the_command_reads_the_variables_of_the_service(line, tmp_path, monkeypatch, capsys):
    line.judge(line.inspect(90), "good")
    monkeypatch.setenv("SEGDEC_RECORD_FOLDER", str(line.folder))
    monkeypatch.setenv("SEGDEC_RECORD_DATABASE", line.url)
    monkeypatch.setattr("sys.argv", ["api", "export-reviewed", "--out", str(tmp_path / "out")])
    monkeypatch.setattr("signal.signal", lambda *_: None)
    main()
    assert capsys.readouterr().out.startswith("Exported 1 reviewed photographs")
    monkeypatch.setattr("sys.argv", ["api", "export-reviewed", "--out", "x", "--since", "monday"])
    with pytest.raises(SystemExit) as refused:
        main()
    assert refused.value.code == 2 and "'monday' is not a time" in capsys.readouterr().err
