"""Reports of a record: content, PDF, Excel and the command."""

import io
import zipfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest
from fpdf import FPDF
from sqlalchemy import insert

from api.database.database import migrate, open_database, write_transaction
from api.messages.language import find_language
from api.record.shifts import ShiftPlan
from api.record.tables import changed_settings, uninspected
from api.reports import report_command, report_content, report_text
from api.reports.excel_report import write_excel
from api.reports.pdf_report import write_pdf
from api.reports.report_content import read_content
from api.reports.report_request import make_report_request
from api.reports.report_text import model_rows
from api.settings import Settings
from segdec.errors import ConfigError
from tests.api.record.filled_record import make_row, stock

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
PLAN = ShiftPlan.from_settings(Settings(record_zone="Europe/Berlin"))
FORMULA = "=1+1"


def fill(engine):
    """Ten parts, one a minute from noon on: two defective, one for review; two lots and versions."""
    labels = ["scratch", "good", "review", "dent", *["good"] * 6]
    rows = [
        make_row(
            number + 1,
            inspected_at=NOON + timedelta(minutes=number),
            station="Łódź-1" if number % 2 else FORMULA,
            part_id=f"P{number}",
            version="1" if number < 5 else "2",
            label=label,
            draw=0.0 if label != "good" else 0.9,
            draw_probability=1.0 if label != "good" else 0.1,
            draw_reason={"good": "chance", "review": "review"}.get(label, "defect"),
            details=f'{{"lot": "L{number // 5}"}}',
        )
        for number, label in enumerate(labels)
    ]
    refused = {"label": "not_inspected", "details": '{"lot": "L0"}', "inspected_at": NOON}
    refused |= dict.fromkeys(("draw", "draw_probability", "draw_reason"))
    stock(engine, [*rows, make_row(99, **refused)])
    left_out = {"at": NOON, "station": "", "client": "", "status": 422, "code": "x", "detail": "x"}
    with write_transaction(engine) as connection:
        connection.execute(insert(uninspected), [left_out, {**left_out, "at": NOON + timedelta(days=1)}])


def read(engine, kind, at=NOON, **filters):
    with engine.connect() as connection:
        return read_content(connection, make_report_request(connection, kind, PLAN, at, **filters))


def test_a_report_counts_its_period(engine):
    fill(engine)
    shift = read(engine, "shift")
    assert (shift.request.title, shift.inspected, shift.defective) == ("Shift of 2 Mar 2026 06:00", 10, 2)
    assert (shift.labels["good"], shift.not_inspected) == (7, 1)
    assert shift.rates == [(NOON, 10, 2)]
    assert [(used.version, used.inspected, used.threshold) for used in shift.models] == [
        ("1", 5, 0.5),
        ("2", 5, 0.5),
    ]
    assert [row["part_id"] for row in shift.defects] == ["P3", "P0"]
    assert (shift.statistics.called_good, shift.statistics.drawn) == (7, 3)
    assert read(engine, "shift", NOON + timedelta(hours=8)).inspected == 0
    assert read(engine, "day", station=FORMULA).inspected == 5
    week = read(engine, "week")
    assert (week.request.title, week.inspected, week.not_inspected) == ("Week 10 of 2026", 10, 2)
    assert week.rates == [(datetime(2026, 3, 1, 23, tzinfo=UTC), 10, 2)]


def test_shifts_begin_at_any_minute(engine):
    fill(engine)
    plan = ShiftPlan.from_settings(Settings(record_shifts="00:00,12:05"))
    counts = []
    for minute in (4, 5):
        with engine.connect() as connection:
            at = NOON + timedelta(minutes=minute)
            content = read_content(connection, make_report_request(connection, "shift", plan, at))
        counts.append((content.inspected, content.defective, len(content.defects)))
    assert counts == [(5, 2, 2), (5, 0, 0)]


def test_the_key_that_signed_a_model_is_named(engine):
    fill(engine)
    content = read(engine, "day")
    signers = {content.models[0].manifest_sha256: "a1b2"}
    first = next(model_rows(replace(content, signers=signers)))
    assert first[-1].endswith(", signed with the key a1b2")
    assert "signed" not in str(list(model_rows(content)))


def test_the_certificate_of_a_lot(engine):
    fill(engine)
    lot = read(engine, "lot", tag=("lot", "L0"))
    assert lot.request.title == "Certificate of lot L0"
    assert (lot.inspected, lot.defective, lot.not_inspected) == (5, 2, 1)
    assert lot.request.span.begin == NOON
    assert [used.version for used in lot.models] == ["1"]


def excel_texts(file):
    with zipfile.ZipFile(io.BytesIO(file)) as book:
        sheets = [book.read(f"xl/worksheets/sheet{number}.xml") for number in (1, 2, 3)]
    roots = [ElementTree.fromstring(sheet) for sheet in sheets]
    return [[node.text for node in root.iter() if node.tag.endswith(("}t", "}v"))] for root in roots], sheets


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_reports_are_files(engine, monkeypatch):
    fill(engine)
    content = read(engine, "day")
    assert write_pdf(content, NOON).startswith(b"%PDF-")
    texts, sheets = excel_texts(write_excel(content, engine))
    assert texts[0][0] == "Day 2 Mar 2026"
    assert {"Defective", "2 (20.0 %)", "Not inspected"} <= set(texts[0])
    assert texts[1][5:] == ["10", "2", "0.2"]
    assert texts[2].count(FORMULA) == 5 and b"<f>" not in sheets[2]
    assert {"Łódź-1", "P9", '{"lot": "L1"}'} <= set(texts[2])
    monkeypatch.setattr(report_content, "MAX_DEFECTS", 1)
    assert len(read(engine, "day").defects) == 1


TEXTS = {
    "formula": '=HYPERLINK("http://a")',
    "control characters": "a\x01\x1b\x0b\x85b\u2028c",
    "right to left": "\u202egnp.\u2067scratch",
    "emoji": "😀👩‍🏭 測試",
    "long": "W" * 40_000,
    "lines": "a\n" * 5000,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_texts_of_others_stay_in_their_cells(engine, text):
    names = ("label", "station", "part_id", "model", "version", "plan", "plan_finding", "model_label")
    stock(engine, [make_row(1, inspected_at=NOON, plan_version=3, **dict.fromkeys(names, text))])
    content = read(engine, "day")
    assert next(model_rows(content))[4] == f"{text} 3"
    assert write_pdf(content, NOON).startswith(b"%PDF-")
    texts, sheets = excel_texts(write_excel(content, engine))
    assert text not in TEXTS["long"] or max(texts[2], key=len).endswith("W…")
    cells = [node for node in ElementTree.fromstring(sheets[2]).iter() if node.tag.endswith("}c")]
    columns = [node.get("r") for node in cells if node.get("r").endswith("2")]
    assert columns == [f"{column}2" for column in "ABCDEFGHIJKLP"] and b"<f>" not in sheets[2]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_name_like_the_alias_of_the_number_of_pages_stays(engine, monkeypatch):
    """fpdf2 replaces `{nb}`, which only the footer of a page may contain."""
    stock(engine, [make_row(1, inspected_at=NOON, part_id="{nb}", station="{nb}", model="{nb}")])
    output, replaced = FPDF.output, []

    def record_output(document):
        file = output(document)
        replaced.extend(len(page.get_text_substitutions()) for page in document.pages.values())
        return file

    monkeypatch.setattr(FPDF, "output", record_output)
    write_pdf(read(engine, "day"), NOON)
    assert replaced == [1]


def styles(file):
    """The formats of the cells of the sheets of rates and of inspections, by position."""
    with zipfile.ZipFile(io.BytesIO(file)) as book:
        root = ElementTree.fromstring(book.read("xl/styles.xml"))
        texts = {
            node.get("numFmtId"): node.get("formatCode")
            for node in root.iter()
            if "formatCode" in node.attrib
        }
        of_cells = next(node for node in root if node.tag.endswith("}cellXfs"))
        formats = [texts.get(node.get("numFmtId")) for node in of_cells]
        sheets = [ElementTree.fromstring(book.read(f"xl/worksheets/sheet{number}.xml")) for number in (2, 3)]
    cells = [
        {node.get("r"): node.get("s") for node in sheet.iter() if node.tag.endswith("}c")} for sheet in sheets
    ]
    return [{place: formats[int(style or 0)] for place, style in sheet.items()} for sheet in cells]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_an_hour_that_the_clock_repeats_has_its_offset(engine):
    """In Berlin, 3:00 becomes 2:00 on 25 October 2026; on 29 March, 2:00 becomes 3:00."""
    autumn, spring = (datetime(2026, month, day, tzinfo=UTC) for month, day in ((10, 25), (3, 29)))
    hours = [day + timedelta(hours=hour) for day in (autumn, spring) for hour in (-1, 0, 1, 2)]
    stock(engine, [make_row(number, inspected_at=hour) for number, hour in enumerate(hours, 1)])
    repeated = read(engine, "day", autumn)
    assert [row[0] for row in report_text.rate_rows(repeated)] == [
        "25 Oct 2026 01:00",
        "25 Oct 2026 02:00 GMT+02:00",
        "25 Oct 2026 02:00 GMT+01:00",
        "25 Oct 2026 03:00",
    ]
    skipped = [row[0] for row in report_text.rate_rows(read(engine, "day", spring))]
    assert skipped == [f"29 Mar 2026 {hour}:00" for hour in ("00", "01", "03", "04")]
    rates, inspections = styles(write_excel(repeated, engine))
    usual = "d mmm yyyy hh:mm:ss"
    expected = [usual, f'{usual} "GMT+02:00"', f'{usual} "GMT+01:00"', usual]
    assert [rates[f"A{row}"] for row in (2, 3, 4, 5)] == expected
    assert [inspections[f"B{row}"] for row in (5, 4, 3, 2)] == expected


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_german_report(engine):
    fill(engine)
    content = read(engine, "day", language=find_language("de"))
    rows = dict(report_text.summary_rows(content))
    assert content.request.title == "Tag 02.03.2026"
    assert rows["Zeitraum"] == "02.03.2026 00:00 bis 03.03.2026 00:00"
    assert (rows["Fehlerhaft"], rows["Nicht geprüft"]) == ("2 (20,0 %)", "1")
    assert [row[3] for row in report_text.model_rows(content)] == ["fehlerhaft ab 0,500"] * 2
    assert next(report_text.rate_rows(content)) == ("02.03.2026 13:00", "10", "2", "20,0 %")
    sentences = list(report_text.error_lines(content))
    assert "0 von 3 gezogenen Teilen wurden nachgeprüft." in sentences
    assert any(note.startswith("zur Nachprüfung: zu wenige Nachprüfungen") for note in sentences)
    texts, _ = excel_texts(write_excel(content, engine))
    assert {"Prüfung Nr.", "Schwellwert", "gut", "nicht geprüft", "scratch"} <= set(texts[2])


@pytest.fixture
def folder(tmp_path):
    engine = open_database(f"sqlite:///{tmp_path}/record.db")
    migrate(engine)
    fill(engine)
    engine.dispose()
    return tmp_path


def test_the_command_writes_a_file(folder, capsys):
    common = ["--record-folder", str(folder), "--record-zone", "Europe/Berlin", "--at", "2026-03-02T12:00Z"]
    for name in ("a.pdf", "a.xlsx"):
        report_command.run(["shift", *common, "--out", str(folder / name)])
        assert str(folder / name) in capsys.readouterr().out
    assert (folder / "a.pdf").read_bytes().startswith(b"%PDF-")
    assert excel_texts((folder / "a.xlsx").read_bytes())[0][0][0] == "Shift of 2 Mar 2026 06:00"


def test_the_command_uses_changed_settings(folder):
    change = {"name": "record_shifts", "value": '"11:30"', "who": "anna", "at": NOON}
    engine = open_database(f"sqlite:///{folder}/record.db")
    with write_transaction(engine) as connection:
        connection.execute(insert(changed_settings), change)
    engine.dispose()
    for flags, begin in (([], "11:30"), (["--record-shifts", "06:00"], "06:00")):
        words = ["--record-folder", str(folder), "--at", "2026-03-02T12:00Z", *flags]
        report_command.run(["shift", *words, "--out", str(folder / "a.xlsx")])
        title = excel_texts((folder / "a.xlsx").read_bytes())[0][0][0]
        assert title == f"Shift of 2 Mar 2026 {begin}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["day", "--out", "a.doc"], "ends with .pdf or .xlsx"),
        (["lot", "--out", "a.pdf"], "needs a value of the metadata"),
        (["lot", "--out", "a.pdf", "--metadata", "lot:L9"], "No inspection has the metadata lot: L9"),
        (["day", "--out", "a.pdf", "--language", "xx"], "language is xx. Expected one of: en, de"),
        (["day", "--out", "a.pdf", "--record-zone", "Mars"], "such as Europe/Berlin"),
        (["day", "--out", "a.pdf", "--record-folder", "none"], "There is no record in none"),
    ],
)
def test_a_wrong_command_says_what_to_do(folder, words, said):
    with pytest.raises(ConfigError, match=said):
        report_command.run([words[0], "--record-folder", str(folder), *words[1:]])
    assert not list(folder.glob("a.*"))
