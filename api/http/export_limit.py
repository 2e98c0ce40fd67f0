"""Limits how many files with data of the record are made and sent at the same time."""

from collections.abc import AsyncIterator
from typing import Annotated

from api.http.admission import AdmissionLimit
from api.http.components import component

MAX_EXPORTS = 2


class ExportLimit(AdmissionLimit):
    """The number of exports that may run at the same time."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(MAX_EXPORTS, "exports_full", "exports are running", retry_after_s)


async def take_export_slot(exports: Annotated[ExportLimit, component(ExportLimit)]) -> AsyncIterator[None]:
    """Counts an export until its last byte is sent, or its client is gone.

    Raises:
        RequestError: 503 if too many exports are running.
    """
    with exports:
        yield
