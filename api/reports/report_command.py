"""`python -m api report shift --out report.pdf`: writes a report as PDF or Excel."""

import argparse
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

from sqlalchemy import Engine

from api.errors import RequestError
from api.messages.catalogues import DEFAULT
from api.messages.language import Language, find_language
from api.record.current_settings import StoredChange, read_changes
from api.record.open_record import add_setting_flags, open_record, parse_time
from api.record.settings import RecordSettings
from api.record.shifts import ShiftPlan
from api.record.tagging import split_tag
from api.reports.excel_report import write_excel
from api.reports.pdf_report import write_pdf
from api.reports.report_content import read_content
from api.reports.report_request import ReportKind, make_report_request
from segdec.errors import ConfigError
from segdec.runtime.files import write_bytes_atomic

SUFFIXES = (".pdf", ".xlsx")


def run(arguments: Sequence[str]) -> None:
    """Writes a report and prints its path.

    Raises:
        ConfigError: If the record cannot be used, or an option is wrong.
        OSError: If the file cannot be written.
    """
    options = _parser().parse_args(arguments)
    if options.out.suffix not in SUFFIXES:
        raise ConfigError(f"--out is {options.out}. Expected a name that ends with .pdf or .xlsx.")
    language = find_language(options.language)
    with open_record(options.record_database, options.record_folder) as engine:
        with engine.connect() as connection:
            changed = read_changes(connection)
        plan = ShiftPlan.from_settings(_settings(options, changed))
        content = _report(engine, options, plan, language)
    write_bytes_atomic(options.out, content)
    print(f"The report is in {options.out}.")


def _report(engine: Engine, options: argparse.Namespace, plan: ShiftPlan, language: Language) -> bytes:
    at = options.at or datetime.now(UTC)
    if at.tzinfo is None:
        at = at.replace(tzinfo=plan.zone)
    with engine.connect() as connection:
        try:
            request = make_report_request(
                connection, options.kind, plan, at, options.station, options.metadata, language
            )
        except RequestError as error:
            raise ConfigError(str(error)) from error
        content = read_content(connection, request)
    if options.out.suffix == ".pdf":
        return write_pdf(content, datetime.now(UTC))
    return write_excel(content, engine)


def _settings(options: argparse.Namespace, changed: Mapping[str, StoredChange]) -> RecordSettings:
    """Returns shifts and zone: of the flags, as people have changed them, or of the variables."""
    names = ("record_shifts", "record_zone")
    given = {name: changed[name].value for name in names if name in changed}
    given |= {name: flag for name in names if (flag := getattr(options, name)) is not None}
    try:
        return RecordSettings.model_validate(given)
    except ValueError as error:
        raise ConfigError(f"--record-shifts or --record-zone is wrong: {error}") from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m api report", description="Write a report of a shift, a day, a week or a lot."
    )
    add = parser.add_argument
    add("kind", choices=get_args(ReportKind))
    add("--out", type=Path, required=True, metavar="FILE", help="new file, .pdf or .xlsx")
    add("--at", type=parse_time, help="a time in the period, of the plant without a zone (default: now)")
    add("--station", help="only of this station")
    add("--metadata", type=_parse_tag, metavar="KEY:VALUE", help="only with this value, for example lot:4711")
    add("--language", default=DEFAULT, metavar="CODE", help="of the report, for example de (default: en)")
    shifts = "start times of the shifts (default: those of /settings, or SEGDEC_RECORD_SHIFTS)"
    add("--record-shifts", help=shifts)
    add("--record-zone", help="time zone of the plant (default: that of /settings, or SEGDEC_RECORD_ZONE)")
    add_setting_flags(parser, "record_folder", "record_database")
    return parser


def _parse_tag(text: str) -> tuple[str, str]:
    tag = split_tag(text)
    if tag is None:
        raise argparse.ArgumentTypeError(f"'{text}' has no value. Expected for example lot:4711.")
    return tag
