"""Adds the photographs and annotations of a zip archive to a data set."""

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from api.data_sets.annotations import NewAnnotation, annotate
from api.data_sets.converted_folder import ConvertedFolder, ConvertedPhotograph, LoadedPhotograph
from api.data_sets.data_set_store import DataSetStore
from api.data_sets.definitions import classes_of, find_data_set, set_classes
from api.data_sets.free_space import FreeSpace
from api.data_sets.import_program import ProgramLimits, run_datasets
from api.data_sets.imports import IMPORT_JOBS
from api.data_sets.job_schemas import ImportAnswers, ImportProblem, ImportProgress, ImportResult
from api.data_sets.names import MAX_CLASS_NAME, extend_classes
from api.data_sets.photographs import add_photograph, find_photograph
from api.data_sets.tables import data_set_annotations
from api.data_sets.unanswered_archives import UnansweredArchives
from api.errors import RequestError
from api.jobs.stored_jobs import start_job
from api.messages.causes import Cause, JobError
from api.record.queries import add_audit_entry
from segdec.config import GOOD
from segdec.runtime.label_names import plain_label

ARCHIVE, UNPACKED, CONVERTED, PROBLEMS = "archive.zip", "archive", "converted", "problems.jsonl"
DISK_SPACE_FACTOR = 3
"""An import may write this many times the size of the photographs: unpacked, converted and stored."""
SPACE_INTERVAL_S = 1.0
"""Time between two looks at the disk while a program writes to it."""
MAX_PROBLEMS = 200
"""Problems that are stored; the others are counted."""
MAX_UNCLEAR_LABELS = 100
BEFORE_ROTATION = "annotations-before-rotation"
"""Option of the program; warnings name it if annotations may have been drawn before the rotation."""
QUESTIONS = {
    "unclear_label": "The label '{label}' may mean that there is no defect. "
    "Answer the question of the import, "
    "or rename the label or the folder: 'good' for good parts, else by the kind of defect.",
    "mask_before_rotation": "The mask {mask} is {size} pixels (width × height), its photograph {expected}. "
    "If the annotation tool ignored the EXIF orientation, answer the question of the import, or remove the "
    "orientation from the photograph.",
}
"""Texts of problems about which an import asks; those of the program name its options."""
BATCH_FILES, BATCH_BYTES = 50, 64_000_000
"""Photographs that are stored in one transaction, and the bytes after which it ends."""


@dataclass(frozen=True)
class ArchiveOptions:
    """How an archive is read.

    `with_labels`: folders, masks and annotation files give the labels. `max_bytes` limits the files after
    unpacking, `max_pixels` the height × width of a photograph. `free_share` is `record_free_share`, 0…1.
    `answers` are those to the questions of earlier imports of the archive.
    """

    with_labels: bool
    max_bytes: int
    max_pixels: int
    limits: ProgramLimits
    free_share: float
    answers: ImportAnswers = field(default_factory=ImportAnswers)


@dataclass
class ArchiveImport:
    """One import.

    `folder` contains the archive, `ARCHIVE`, or its files, `UNPACKED`; everything else is written there.
    `who` sent the archive `name`. If there are questions, its files are moved to `unanswered`. An import with
    answers `repeats` an earlier one, whose questions are open again if it fails.
    """

    kind = IMPORT_JOBS
    store: DataSetStore
    data_set_id: int
    folder: Path
    options: ArchiveOptions
    unanswered: UnansweredArchives
    name: str
    who: str
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    repeats: int | None = None
    result: ImportResult = field(default_factory=ImportResult)
    id: int = field(init=False)

    async def run(self) -> None:
        """Unpacks, reads and stores the archive.

        Raises:
            SegdecError: If the archive cannot be used.
            RequestError: If the data set was deleted, or its files or rows cannot be stored now.
        """
        is_done = False
        try:
            await self._read_archive()
            await self._store_photographs()
            is_done = True
        finally:
            asking = None if is_done else self.repeats
            if self.result.has_questions:
                asking = self.id
            if asking is not None:
                unpacked = self.folder / UNPACKED
                await asyncio.to_thread(self.unanswered.add, self.data_set_id, asking, unpacked, self.now())

    def start_row(self, connection: Connection, now: datetime) -> int:
        """Adds the row of the import; RequestError 404 if the data set does not exist."""
        data_set = find_data_set(connection, self.data_set_id)["name"]
        self.id = start_job(connection, IMPORT_JOBS, self.data_set_id, self.progress, self.who, now)
        facts = {"data_set": data_set, "import": self.id, "name": self.name}
        add_audit_entry(connection, self.who, "import photographs", after=facts)
        return self.id

    @property
    def progress(self) -> ImportProgress:
        """The archive, and what was done so far."""
        return ImportProgress(name=self.name, result=self.result, answers=self.options.answers)

    async def _read_archive(self) -> None:
        options = self.options
        notes = [] if (self.folder / UNPACKED).exists() else await self._unpack()
        (self.folder / ARCHIVE).unlink(missing_ok=True)
        command = ["convert", "auto", UNPACKED, CONVERTED, "--skip-broken", "--problems", PROBLEMS]
        command += ["--skip-bad-split-file", "--own-files", "--max-pixels", str(options.max_pixels)]
        command += _answer_options(options.answers)
        try:
            notes += await self._run(*command, *["--unlabelled"] * (not options.with_labels))
        finally:
            self._add_problems()
        self.result = self.result.model_copy(update={"notes": [_without_folder(note) for note in notes]})
        self._ask_about_rotation(any(BEFORE_ROTATION in note for note in notes))

    async def _store_photographs(self) -> None:
        folder = await asyncio.to_thread(ConvertedFolder, self.folder / CONVERTED)
        used = await asyncio.to_thread(folder.used_classes)
        classes = await self.store.write(_add_classes, self.data_set_id, used, self.who)
        self._count(found=len(folder.photographs))
        for batch in _batches(folder.photographs):
            loaded = await asyncio.to_thread(folder.load, batch, classes)
            await self._check_space(sum(one.photograph.file.bytes for one in loaded))
            await self._store_batch(loaded)

    async def _unpack(self) -> list[str]:
        """Unpacks the archive, which may be much smaller than its files, if they leave space on the disk."""
        space = await self._measure_space()
        limit = min(self.options.max_bytes, space.usable // DISK_SPACE_FACTOR)
        try:
            return await self._run("unpack", ARCHIVE, UNPACKED, "--max-gb", f"{limit / 1e9:.9f}")
        except JobError as error:
            if limit == self.options.max_bytes or error.cause.code != "archive_unpacked":
                raise
            unpacked = error.cause.values["gigabytes"]
            values = {"gigabytes": unpacked, "free": space.free_gb, "reserved": space.reserved_gb}
            cause = Cause(code="archive_unpacked_disk", values=values)
            raise JobError(f"{error} {space}", cause) from error

    async def _run(self, *arguments: str) -> list[str]:
        """Runs a program; ends it if too little of the disk is free."""
        program = asyncio.create_task(run_datasets(self.folder, self.options.limits, *arguments))
        try:
            while not (await asyncio.wait({program}, timeout=SPACE_INTERVAL_S))[0]:
                await self._check_space(0)
            return await program
        except JobError as error:
            raise JobError(_without_folder(str(error)), error.cause.map_texts(_without_folder)) from error
        finally:
            program.cancel()
            await asyncio.wait({program})

    async def _measure_space(self) -> FreeSpace:
        return await asyncio.to_thread(FreeSpace.measure, self.folder, self.options.free_share)

    async def _check_space(self, needed: int) -> None:
        """Raises a JobError if the import must not write so many bytes more."""
        space = await self._measure_space()
        if space.usable <= needed:
            raise JobError(
                f"The import ended before it fills the disk. {space} Free space, or send fewer photographs "
                "at once; those that were stored stay.",
                Cause(code="disk_almost_full", values={"free": space.free_gb, "reserved": space.reserved_gb}),
            )

    def _add_problems(self) -> None:
        path = self.folder / PROBLEMS
        if path.is_file():
            lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
            self._report(*map(_read_problem, lines))
            self._count(left_out=sum(one["left_out"] for one in lines))
            causes = [Cause(**one["cause"]) for one in lines if one["cause"] is not None]
            self._ask_about_labels(str(one.values["label"]) for one in causes if one.code == "unclear_label")
            self._ask_about_rotation(any(one.code == "mask_before_rotation" for one in causes))

    def _ask_about_labels(self, labels: Iterable[str]) -> None:
        usable = [label for label in labels if label.isprintable() and len(label) <= MAX_CLASS_NAME]
        one_spelling = {plain_label(label): label for label in sorted(usable, reverse=True)}
        update = {"unclear_labels": sorted(one_spelling.values())[:MAX_UNCLEAR_LABELS]}
        self.result = self.result.model_copy(update=update)

    def _ask_about_rotation(self, is_unclear: bool) -> None:
        if is_unclear and self.options.answers.annotations_before_rotation is None:
            self.result = self.result.model_copy(update={"unclear_rotation": True})

    def _report(self, *problems: ImportProblem) -> None:
        known = [*self.result.problems, *problems][:MAX_PROBLEMS]
        self.result = self.result.model_copy(update={"problems": known})

    def _count(self, **counts: int) -> None:
        total = {name: (getattr(self.result, name) or 0) + count for name, count in counts.items()}
        self.result = self.result.model_copy(update=total)

    async def _store_batch(self, loaded: Sequence[LoadedPhotograph]) -> None:
        files = [one.photograph.file for one in loaded] + [one.mask for one in loaded if one.mask is not None]
        is_rotated = self.options.answers.annotations_before_rotation is True
        outcomes = await self.store.write(
            _add_photographs, self.data_set_id, loaded, self.who, self.now(), is_rotated, files=files
        )
        for outcome in outcomes:
            self._count(**{outcome: 1})
        self._report(
            *(
                ImportProblem(name=one.photograph.name, text=one.problem.text, cause=one.problem.cause)
                for one in loaded
                if one.problem is not None
            )
        )


def _batches(photographs: Sequence[ConvertedPhotograph]) -> Iterator[list[ConvertedPhotograph]]:
    batch: list[ConvertedPhotograph] = []
    size = 0
    for photograph in photographs:
        batch.append(photograph)
        size += photograph.image.stat().st_size
        if len(batch) == BATCH_FILES or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _answer_options(answers: ImportAnswers) -> list[str]:
    """Returns the options of the program that state the answers."""
    options = [f"--good={label}" for label in answers.good_labels]
    options += [f"--defect={label}" for label in answers.defect_labels]
    before = answers.annotations_before_rotation
    return options if before is None else [*options, f"--{'' if before else 'no-'}{BEFORE_ROTATION}"]


def _read_problem(line: dict[str, Any]) -> ImportProblem:
    """Reads a line of `PROBLEMS`."""
    cause = line["cause"]
    if cause is None:
        cause = Cause(code="photograph_unusable" if line["left_out"] else "shape_unusable")
    else:
        cause = Cause(**cause).map_texts(_without_folder)
    text = QUESTIONS[cause.code].format(**cause.values) if cause.code in QUESTIONS else line["text"]
    return ImportProblem(name=line["name"], text=_without_folder(text), cause=cause)


def _without_folder(text: str) -> str:
    """The text with paths below the root of the archive."""
    return text.replace(f"{UNPACKED}/", "")


# === In the database ===


def _add_classes(connection: Connection, data_set_id: int, used: Sequence[str], who: str) -> list[str]:
    """Adds the classes that the data set does not have; returns all."""
    row = find_data_set(connection, data_set_id)
    known = {name.casefold() for name in (GOOD, *classes_of(row))}
    added = [name for name in used if name.casefold() not in known]
    classes = extend_classes(classes_of(row), added)
    set_classes(connection, row, classes, who)
    return classes


def _add_photographs(
    connection: Connection,
    data_set_id: int,
    loaded: Sequence[LoadedPhotograph],
    who: str,
    now: datetime,
    is_rotated: bool,
) -> list[str]:
    """Adds photographs, and their labels unless a person has labelled them; returns the outcomes to count.

    `is_rotated`: an import before it may have stored masks that were not rotated; these are replaced.
    """
    outcomes: list[str] = []
    for one in loaded:
        added = add_photograph(connection, data_set_id, one.photograph, who, now)
        outcomes.append(added.outcome)
        if one.content.label is None:
            continue
        row = find_photograph(connection, data_set_id, added.id)
        mask = None if one.mask is None else one.mask.sha256
        stored = row["label"], row["mask"] and bytes(row["mask"])
        if row["annotation_id"] is not None and stored == (one.content.label, mask):
            continue
        is_same_label = is_rotated and row["label"] == one.content.label
        is_used = row["annotation_id"] is None or (is_same_label and _is_imported(connection, row))
        new = NewAnnotation(one.content, mask, "imported", who, now)
        is_added = is_used and _annotate_unless_open(connection, data_set_id, row, new)
        outcomes.append("labelled" if is_added else "kept")
    return outcomes


def _annotate_unless_open(
    connection: Connection, data_set_id: int, photograph: RowMapping, new: NewAnnotation
) -> bool:
    """Adds an annotation, unless somebody has the photograph open to label it; returns whether it did."""
    try:
        annotate(connection, data_set_id, photograph["id"], new, photograph["annotation_id"])
    except RequestError as error:
        if error.code != "leased":
            raise
        return False
    return True


def _is_imported(connection: Connection, photograph: RowMapping) -> bool:
    """Whether the latest annotation of a photograph is that of an archive."""
    columns = data_set_annotations.c
    source = select(columns.source).where(columns.id == photograph["annotation_id"])
    return bool(connection.execute(source).scalar_one() == "imported")
