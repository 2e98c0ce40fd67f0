"""Settings of the record: its place, its shifts, what is reviewed, how long pictures are kept."""

import re
from datetime import time
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, NonNegativeFloat
from pydantic_settings import NoDecode

from api.http.settings import ServerSettings
from api.setting_group import flag_of
from segdec.errors import ConfigError

RecordMode = Literal["required", "best-effort", "off"]
MAX_DAYS = 36_500.0
"""Longest finite time of keeping pictures."""
Days = Annotated[float, Field(gt=0, le=MAX_DAYS)]
Gigabytes = Annotated[float, Field(gt=0, le=1e9)]
Share = Annotated[float, Field(ge=0, le=1)]
NEEDS_RECORD = "needs a record"
"""Marks, in `Annotated`, a setting that is rejected if no record is kept."""


def _read_shifts(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    words = [word.strip() for word in value.split(",")]
    if not all(re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", word) for word in words):
        raise ValueError("expected times of the day such as 06:00,14:00,22:00")
    return tuple(sorted({time.fromisoformat(word) for word in words}))


def _known_zone(name: str) -> str:
    try:
        return ZoneInfo(name).key
    except (KeyError, ValueError, OSError) as error:  # unknown, not a file name, or a folder
        raise ValueError("unknown; expected a time zone such as Europe/Berlin") from error


class RecordSettings(ServerSettings):
    """Settings of the record."""

    record: RecordMode = "off"
    """whether /v1/inspect records inspections: required answers 503 if it cannot, best-effort answers with a
    warning, off records nothing"""
    record_folder: Path = Path("record")
    """folder of the record's pictures and database, unless the next two settings name others"""
    record_pictures: str | None = None
    """store of the pictures, s3://BUCKET/PREFIX, configured by the variables AWS_…; default: files in
    record-folder"""
    record_database: str | None = None
    """URL of the record's database, postgresql://USER:PASSWORD@HOST/NAME; default: an SQLite file in
    record-folder"""
    record_defect_share: Share = 1.0
    """share of the defects, and of photographs for review, that is queued for review"""
    record_good_share: Share = 0.02
    """random share of the good photographs that is queued for review: it estimates how many defects are
    missed"""
    record_near: Share = 0.5
    """fraction of the threshold: good photographs above it are all queued for review; 1: none of them"""
    record_good_days: Days | None = 30.0
    """days for which pictures of good photographs are kept; none: without limit"""
    record_sample_share: Share = 0.02
    """random share of the good photographs that is kept longer, as a sample"""
    record_sample_days: Days | None = 365.0
    """days for which that sample, and photographs queued for review, are kept"""
    record_defect_days: Days | None = 730.0
    """days for which pictures of defects, and of photographs for review, are kept"""
    record_reviewed_days: Days | None = None
    """days for which reviewed pictures are kept; default: without limit"""
    record_budget_gb: Gigabytes | None = None
    """most gigabytes of pictures; above it, the least valuable are deleted first"""
    record_free_share: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """share of the pictures' disk that stays free; deletes the least valuable pictures first, unless
    that cannot suffice"""
    record_reserved_mb: NonNegativeFloat = 64.0
    """megabytes of the pictures' disk that are reserved by a file, for deleting pictures when the disk is
    full; 0: none"""
    record_shifts: Annotated[tuple[time, ...], NoDecode, BeforeValidator(_read_shifts)] = Field(
        "06:00,14:00,22:00", validate_default=True, min_length=1
    )
    """start times of the shifts, for the counts at /line and for reports"""
    record_zone: Annotated[str, AfterValidator(_known_zone)] = "UTC"
    """time zone of the plant, for shifts and days at /line, /trends and in reports: Europe/Berlin"""

    def check(self) -> None:
        super().check()
        for name, field in type(self).model_fields.items():
            if NEEDS_RECORD in field.metadata and getattr(self, name) and self.record == "off":
                raise ConfigError(f"{flag_of(name)} needs a record. Pass --record required or best-effort.")
