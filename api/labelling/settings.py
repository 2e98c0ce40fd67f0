"""Settings of labelling."""

from pathlib import Path
from typing import Annotated

from api.record.settings import NEEDS_RECORD, RecordSettings


class LabellingSettings(RecordSettings):
    """Settings of labelling."""

    sam: Annotated[Path | None, NEEDS_RECORD] = None
    """folder with encoder and decoder of SAM 2.1 as ONNX files, which then find the masks from clicks on
    /label; needs the group sam"""
