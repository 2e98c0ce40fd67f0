"""Latency of the routes of data sets: five data sets with 10,000 photographs each.

    python -m benchmarks.serving.large_data_set --folder FOLDER [--photographs 10000] [--times 20]
    python -m benchmarks.serving.large_data_set --folder FOLDER --database postgresql://USER:PASSWORD@HOST/NAME

The database and the folder must be new. They get rows without files, 4 of 5 photographs with a label. The
service has a stub network. One client sends each request to one of the data sets in turn.
"""

import hashlib
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import httpx
from sqlalchemy import Connection, insert

from api.data_sets.data_set_store import FOLDER
from api.data_sets.definitions import create_data_set
from api.data_sets.tables import data_set_annotations, data_set_files, data_set_photographs
from api.database.database import open_database, write_transaction
from api.record.initialization import DATABASE, initialize_record
from api.record.storage.pictures import FolderPictures
from api.record.stored_files import check_same_record
from benchmarks.harness import Target, benchmark_parser, finish
from benchmarks.serving.stub_service import start_stub
from segdec.errors import RunError
from segdec.runtime.cli import clean_exit

MAX_MS = 100.0
SETS = "/v1/data-sets"
DATA_SETS = 5
THUMBNAIL_BYTES = 9000
LABELS = ("good", "good", "scratch", "dent")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
PATHS = {
    "all data sets": "",
    "one data set": "/{id}",
    "a page of 100 photographs": "/{id}/photographs",
    "a page of 500": "/{id}/photographs?limit=500",
    "a page of a label": "/{id}/photographs?label=dent",
    "a page of a label that is nowhere": "/{id}/photographs?label=burr",
    "a page without a label": "/{id}/photographs?state=unlabelled",
    "a search by name": "/{id}/photographs?search=/00999",
    "a search that finds nothing": "/{id}/photographs?search=nothing",
    "a thumbnail": "/{id}/photographs/{photograph}/image?form=thumbnail",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Creates the data sets, measures and prints; returns the exit code."""
    parser = benchmark_parser(__doc__, photographs=10_000)
    parser.add_argument("--folder", type=Path, required=True, help="of a new record")
    parser.add_argument("--database", metavar="URL", help="an empty database (default: SQLite in the folder)")
    parser.add_argument("--times", type=int, default=20, help="requests of each kind (default: %(default)s)")
    options = parser.parse_args(arguments)
    url = options.database or f"sqlite:///{options.folder / DATABASE}"
    with clean_exit():
        write_data_sets(url, options.folder, options.photographs)
        settings = {"record": "required", "record-folder": str(options.folder), "record-database": url}
        settings |= {"record-free-share": "0", "local-role": "engineer"}
        with start_stub(settings) as service, httpx.Client(timeout=60) as client:
            client.base_url = f"http://127.0.0.1:{service.port}"
            kinds = requests(options.photographs)
            took = {name: measure(client, request, options.times) for name, request in kinds}
    rows = [
        {"request": name, "times": len(times), "p50 ms": statistics.median(times), "max ms": max(times)}
        for name, times in took.items()
    ]
    targets = [
        Target(f"{name}, median ms", statistics.median(times), highest=MAX_MS)
        for name, times in took.items()
        if name != "a version"  # reads all photographs
    ]
    return finish(options.json, rows, targets)


Request = Callable[[int], httpx.Request]


def requests(photographs: int) -> Iterator[tuple[str, Request]]:
    """Yields name and request of each kind; the request gets the id of a data set."""
    for name, path in PATHS.items():
        yield (
            name,
            lambda number, path=path: httpx.Request(  # type: ignore[misc]
                "GET", SETS + path.format(id=number, photograph=(number - 1) * photographs + 7)
            ),
        )
    digests = [digest_of(0, number).hex() for number in range(1000)]
    yield "which of 1000 are missing", post("/{id}/missing", {"sha256": digests})
    yield "the next photograph to label", post("/{id}/next", {"session": "a"})
    yield "a version", post("/{id}/versions", {})


def post(path: str, body: Mapping[str, object]) -> Request:
    """Returns a request with a JSON body."""
    return lambda number: httpx.Request("POST", SETS + path.format(id=number), json=body)


def measure(client: httpx.Client, request: Request, times: int) -> list[float]:
    """Sends a request several times; returns the latencies without the first one, ms.

    Raises:
        RunError: If an answer is an error.
    """
    took = []
    for turn in range(times + 1):
        asked = request(turn % DATA_SETS + 1)
        begun = time.perf_counter()
        answer = client.request(asked.method, str(asked.url), content=asked.content, headers=asked.headers)
        took.append(1000 * (time.perf_counter() - begun))
        if answer.is_error:
            raise RunError(f"{asked.url}: {answer.status_code} {answer.text[:300]}. Expected an answer.")
    return took[1:]


# === Rows ===


def write_data_sets(url: str, folder: Path, photographs: int) -> None:
    """Creates a record with data sets whose files are missing."""
    engine = open_database(url)
    initialize_record(engine, folder, None)
    chance = random.Random(0)
    with write_transaction(engine) as connection:
        check_same_record(connection, FolderPictures(folder / FOLDER), data_set_files)
        for number in range(DATA_SETS):
            data_set_id = create_data_set(connection, f"set {number}", ["scratch", "dent"], "benchmark", NOW)
            write_photographs(connection, data_set_id, number, photographs, chance)
    engine.dispose()


def write_photographs(
    connection: Connection, data_set_id: int, number: int, photographs: int, chance: random.Random
) -> None:
    """Adds photographs, with a label for four of five; their ids are consecutive."""
    digests = [digest_of(number, photograph) for photograph in range(photographs)]
    size = {"bytes": 2_000_000, "format": "jpeg", "width": 4000, "height": 3000}
    files = [{"sha256": digest, **size, "thumbnail": os.urandom(THUMBNAIL_BYTES)} for digest in digests]
    connection.execute(insert(data_set_files), files)
    first_id, labelled = number * photographs + 1, 4 * photographs // 5
    rows = [
        {
            "data_set_id": data_set_id,
            "sha256": digest,
            "name": f"line-{position % 7}/{position:05}.jpg",
            "part": f"plate {position // 4}",
            "added_at": NOW,
            "added_by": "benchmark",
            "label": chance.choice(LABELS) if position < labelled else None,
            "annotation_id": first_id + position if position < labelled else None,
        }
        for position, digest in enumerate(digests)
    ]
    connection.execute(insert(data_set_photographs), rows)
    annotation = {"at": NOW, "author": "benchmark", "label": "good", "source": "drawn"}
    annotated = [{"photograph_id": first_id + position, **annotation} for position in range(labelled)]
    connection.execute(insert(data_set_annotations), annotated)


def digest_of(data_set: int, photograph: int) -> bytes:
    """Returns the digest of a photograph that does not exist."""
    return hashlib.sha256(f"{data_set}/{photograph}".encode()).digest()


if __name__ == "__main__":
    sys.exit(main())
