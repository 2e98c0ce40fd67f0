"""Checks the labelled photographs of a data set with `python -m datasets findings`."""

import asyncio
import json
import re
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection

from api.data_sets.checks import INTERRUPTED, ReadFinding, finish_check, keep_check_alive, start_check
from api.data_sets.data_set_store import DataSetStore
from api.data_sets.import_program import ProgramLimits, run_datasets
from api.data_sets.job_schemas import JobState
from api.data_sets.versions import MASKS, PHOTOGRAPHS, Snapshot, list_files, read_manifest
from api.messages.causes import Cause, Failure
from segdec.config import GOOD

DATA_SET, FINDINGS = "data_set", "findings.jsonl"
PATHS = re.compile(rf"{DATA_SET}/((?:{PHOTOGRAPHS}|{MASKS})/[0-9a-f]+\.\w+)")


class CheckJob:
    """One check.

    Attributes:
        interrupted: For the user if the service ends before the check.

    Args:
        store: The data sets.
        data_set_id: The data set.
        snapshot: What is checked.
        folder: Everything is written there.
        limits: Of the program.
        who: User or key that wants the check.
    """

    interrupted = INTERRUPTED

    def __init__(
        self,
        store: DataSetStore,
        data_set_id: int,
        snapshot: Snapshot,
        folder: Path,
        limits: ProgramLimits,
        who: str,
    ) -> None:
        self._store, self._data_set_id, self._snapshot = store, data_set_id, snapshot
        self._folder, self._limits, self._who = folder, limits, who
        self._findings: list[ReadFinding] = []

    async def run(self) -> None:
        """Writes the photographs into a folder and checks it.

        Raises:
            SegdecError: If they cannot be read.
            RequestError: If a file is lost, or the record cannot be used now.
        """
        await self._write_folder(self._folder / DATA_SET)
        await run_datasets(self._folder, self._limits, "findings", "manifest", DATA_SET, FINDINGS)
        self._findings = await asyncio.to_thread(self._read_findings)

    async def _write_folder(self, folder: Path) -> None:
        for name in (PHOTOGRAPHS, MASKS):
            (folder / name).mkdir(parents=True)
        (folder / "manifest.jsonl").write_bytes(self._snapshot.manifest.data)
        names = self._snapshot.classes or [GOOD]
        (folder / "classes.txt").write_text("".join(f"{name}\n" for name in names), "utf-8")
        for entry in read_manifest(self._snapshot.manifest.data):
            for path, sha256 in list_files(entry):
                data = await self._store.read_file(sha256)
                await asyncio.to_thread((folder / path).write_bytes, data)

    def _read_findings(self) -> list[ReadFinding]:
        """Reads the findings; the names of photographs replace the paths of their files."""
        entries = read_manifest(self._snapshot.manifest.data)
        names = {path: entry["name"] for entry in entries for path, _ in list_files(entry)}
        lines = (self._folder / FINDINGS).read_text("utf-8").splitlines()
        found = [json.loads(line) for line in lines]

        def with_names(text: str) -> str:
            return PATHS.sub(lambda path: f"'{names[path[1]]}'", text)

        return [
            {
                **one,
                "text": with_names(one["text"]),
                "cause": one["cause"] and Cause(**one["cause"]).map_texts(with_names).model_dump(),
            }
            for one in found
        ]

    def start_row(self, connection: Connection, now: datetime) -> int:
        """Adds the row of the check; raises as `start_check`."""
        count = self._snapshot.counts.photographs
        return start_check(connection, self._data_set_id, count, self._who, now)

    def keep_alive(self, connection: Connection, number: int, now: datetime) -> None:
        """States that the check is running."""
        keep_check_alive(connection, number, now)

    def finish_row(
        self, connection: Connection, number: int, state: JobState, failure: Failure | None, now: datetime
    ) -> None:
        """States the end of the check."""
        finish_check(connection, number, state, self._findings, failure, now)
