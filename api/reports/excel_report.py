"""A report as an Excel file: a sheet with the summary, one with the rates, and one with all inspections."""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import xlsxwriter  # type: ignore[import-untyped]
from sqlalchemy import Engine

from api.messages.language import Language
from api.record.search import inspection_pages
from api.record.tables import inspections
from api.reports.report_content import ReportContent
from api.reports.report_text import error_lines, label_text, model_rows, rate_titles, shorten, summary_rows
from segdec.runtime.identifiers import NOT_INSPECTED

ROWS = 500
"""Rows per query."""
TIME_WIDTH = 30
"""Characters of a column of times."""
MAX_ROWS = 1_000_000
"""Inspections in a file, the newest ones: a sheet has 1,048,576 rows."""
MAX_CHARACTERS = 16_000
"""In a cell: Excel permits 32,767 units of UTF-16, of which a character has one or two."""
COLUMNS = [
    inspections.c[name]
    for name in (
        *("id", "inspected_at", "label", "score", "threshold", "station", "part_id"),
        *("model", "version", "plan", "plan_version", "plan_finding", "model_label"),
        *("reviewed_label", "reviewer", "review_reason", "details"),
    )
]
OPTIONS = {
    "constant_memory": True,
    "strings_to_formulas": False,
    "strings_to_urls": False,
    "strings_to_numbers": False,
    "remove_timezone": True,
}
"""Rows are written to a temporary file; texts of clients stay texts."""


def write_excel(content: ReportContent, engine: Engine) -> bytes:
    """Returns the report as an Excel file.

    Raises:
        SQLAlchemyError: If the database does not answer.
    """
    with tempfile.TemporaryFile() as file:
        with xlsxwriter.Workbook(file, OPTIONS) as book:
            _write(book, content, engine)
        file.seek(0)
        return file.read()


def _write(book: Any, content: ReportContent, engine: Engine) -> None:
    bold = book.add_format({"bold": True})
    time_format = _time_formats(book, content.request.language)
    translate = content.request.language.translate
    title = (content.request.title,)
    lines = [
        title,
        *summary_rows(content),
        (),
        *((line,) for line in error_lines(content)),
        (),
        *model_rows(content),
    ]
    _fill(book.add_worksheet(translate("Summary")), lines, bold, (24, 40, 14, 40, 24, 70))
    sheet = book.add_worksheet(translate("Defect rate"))
    _fill(sheet, [rate_titles(content)], bold, (TIME_WIDTH, 12, 12, 12))
    share = book.add_format({"num_format": "0.00 %"})
    for number, (begin, inspected, defective) in enumerate(content.rates, 1):
        local = begin.astimezone(content.request.zone)
        sheet.write_datetime(number, 0, local, time_format(local))
        sheet.write_row(number, 1, (inspected, defective))
        sheet.write_number(number, 3, defective / inspected, share)
    sheet = book.add_worksheet(translate("Inspections"))
    sheet.set_column(1, 1, TIME_WIDTH)
    sheet.freeze_panes(1, 0)
    _fill(sheet, [_inspection_titles(content.request.language)], bold, ())
    for number, values in enumerate(_inspections(engine, content), 1):
        _write_row(sheet, number, values)
        sheet.write_datetime(number, 1, values[1], time_format(values[1]))


def _time_formats(book: Any, language: Language) -> Callable[[datetime], Any]:
    """Returns a function from a local time to its cell's format, which contains its `repeated_offset`."""

    @cache
    def add(offset: str) -> Any:
        return book.add_format({"num_format": language.excel_time + (offset and f' "{offset}"')})

    return lambda local: add(language.repeated_offset(local))


def _fill(sheet: Any, lines: Iterable[Sequence[str]], first: Any, widths: Sequence[int]) -> None:
    for column, width in enumerate(widths):
        sheet.set_column(column, column, width)
    for number, line in enumerate(lines):
        _write_row(sheet, number, line, first if number == 0 else None)


def _write_row(sheet: Any, number: int, values: Sequence[Any], cell_format: Any = None) -> None:
    cells = [shorten(value, MAX_CHARACTERS) if isinstance(value, str) else value for value in values]
    sheet.write_row(number, 0, cells, cell_format)


def _inspection_titles(language: Language) -> list[str]:
    translate = language.translate
    return [
        *(translate("Record"), translate("Time"), translate("Verdict"), translate("Score")),
        *(translate("Threshold"), translate("Station"), translate("Part"), translate("Model")),
        *(translate("Version"), translate("Inspection plan"), translate("Finding of the plan")),
        *(translate("Label of the model"), translate("Review"), translate("Reviewer"), translate("Reason")),
        translate("Metadata"),
    ]


def _inspections(engine: Engine, content: ReportContent) -> Iterator[Sequence[Any]]:
    filters, language = content.request.filters, content.request.language
    written = 0
    for rows in inspection_pages(engine, filters, COLUMNS, ROWS):
        for row in rows[: MAX_ROWS - written]:
            written += 1
            judged = row["label"] != NOT_INSPECTED
            yield (
                row["id"],
                row["inspected_at"].astimezone(content.request.zone),
                label_text(row["label"], language),
                row["score"] if judged else None,
                row["threshold"] if judged else None,
                *(row[name] for name in ("station", "part_id", "model", "version")),
                None if row["plan"] is None else f"{row['plan']} {row['plan_version']}",
                row["plan_finding"],
                label_text(row["model_label"], language),
                label_text(row["reviewed_label"], language),
                row["reviewer"],
                row["review_reason"],
                json.dumps(json.loads(row["details"]), ensure_ascii=False),
            )
        if written == MAX_ROWS:
            return
