"""Checks the labelled photographs of a data set with `python -m datasets findings`."""

import asyncio
import json
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from api.data_sets.checks import CHECK_JOBS
from api.data_sets.data_set_store import DataSetStore
from api.data_sets.definitions import find_data_set
from api.data_sets.import_program import ProgramLimits, run_datasets
from api.data_sets.job_schemas import CheckProgress
from api.data_sets.versions import MASKS, PHOTOGRAPHS, Snapshot, list_files, read_manifest
from api.jobs.stored_jobs import start_job
from api.messages.causes import Cause
from segdec.runtime.class_list import format_class_list

DATA_SET, FINDINGS = "data_set", "findings.jsonl"
PATHS = re.compile(rf"{DATA_SET}/((?:{PHOTOGRAPHS}|{MASKS})/[0-9a-f]+\.\w+)")


@dataclass
class CheckJob:
    """One check.

    Everything is written to `folder`.
    """

    kind = CHECK_JOBS
    store: DataSetStore
    data_set_id: int
    snapshot: Snapshot
    folder: Path
    limits: ProgramLimits
    who: str

    def __post_init__(self) -> None:
        self.progress = CheckProgress(checked=self.snapshot.counts.photographs)

    async def run(self) -> None:
        """Writes the photographs into a folder and checks it.

        Raises:
            SegdecError: If they cannot be read.
            RequestError: If a file is lost, or the record cannot be used now.
        """
        await self._write_folder(self.folder / DATA_SET)
        await run_datasets(self.folder, self.limits, "findings", "manifest", DATA_SET, FINDINGS)
        findings = await asyncio.to_thread(self._read_findings)
        self.progress = self.progress.model_copy(update={"findings": findings})

    async def _write_folder(self, folder: Path) -> None:
        for name in (PHOTOGRAPHS, MASKS):
            (folder / name).mkdir(parents=True)
        (folder / "manifest.jsonl").write_bytes(self.snapshot.manifest.data)
        (folder / "classes.txt").write_text(format_class_list(self.snapshot.classes), "utf-8")
        for entry in read_manifest(self.snapshot.manifest.data):
            for path, sha256 in list_files(entry):
                data = await self.store.read_file(sha256)
                await asyncio.to_thread((folder / path).write_bytes, data)

    def _read_findings(self) -> list[dict[str, Any]]:
        """Reads the findings; the names of photographs replace the paths of their files."""
        entries = read_manifest(self.snapshot.manifest.data)
        names = {path: entry["name"] for entry in entries for path, _ in list_files(entry)}
        lines = (self.folder / FINDINGS).read_text("utf-8").splitlines()
        findings = [json.loads(line) for line in lines]

        def with_names(text: str) -> str:
            return PATHS.sub(lambda path: f"'{names[path[1]]}'", text)

        return [
            {
                **one,
                "text": with_names(one["text"]),
                "cause": one["cause"] and Cause(**one["cause"]).map_texts(with_names).model_dump(),
            }
            for one in findings
        ]

    def start_row(self, connection: Connection, now: datetime) -> int:
        """Adds the row of the check.

        Raises:
            RequestError: 404 if the data set does not exist, 409 if a check is running.
        """
        find_data_set(connection, self.data_set_id)
        return start_job(connection, CHECK_JOBS, self.data_set_id, self.progress, self.who, now)
