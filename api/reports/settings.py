"""Settings of scheduled reports."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field
from pydantic_settings import NoDecode

from api.record.settings import NEEDS_RECORD, RecordSettings
from api.setting_group import read_words
from segdec.errors import ConfigError

ScheduledKind = Literal["shift", "day", "week"]
MailAddress = Annotated[str, Field(pattern=r"^[^@\s<>,]+@[^@\s<>,]+$")]


class ReportSettings(RecordSettings):
    """Settings of scheduled reports."""

    report_schedule: Annotated[
        tuple[ScheduledKind, ...], NoDecode, BeforeValidator(read_words), NEEDS_RECORD
    ] = ()
    """reports that are made at the end of each period: shift,day,week"""
    report_folder: Path | None = None
    """folder for these reports, as PDF and Excel"""
    report_smtp: str | None = None
    """mail server that sends them, smtp://HOST:PORT, smtps:// with TLS; USER:PASSWORD@ may precede the host
    (then use the variable, not the flag)"""
    report_from: str = ""
    """e-mail address of the sender"""
    report_to: Annotated[tuple[MailAddress, ...], NoDecode, BeforeValidator(read_words)] = ()
    """e-mail addresses of the receivers, separated by commas"""
    report_language: str = "en"
    """language of these reports: en, de"""

    def check(self) -> None:
        super().check()
        if self.report_schedule and self.report_folder is None and self.report_smtp is None:
            raise ConfigError("--report-schedule needs --report-folder or --report-smtp.")
        if self.report_smtp is not None and not (self.report_from and self.report_to):
            raise ConfigError("--report-smtp needs --report-from and --report-to.")
