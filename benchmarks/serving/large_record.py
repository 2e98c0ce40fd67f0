"""Latency of queries on a record of ten million inspections: pages, single records, reviews, statistics.

    python -m benchmarks.serving.large_record --folder FOLDER [--rows 10000000] [--stations N] [--times 20]
                                                  [--json FILE]
    python -m benchmarks.serving.large_record --folder FOLDER --database postgresql://USER:PASSWORD@HOST/NAME

`generated_record` creates the record first, in half an hour and 15 GB with SQLite; an interrupted run
resumes. The service has a stub network. One client sends each query for random parts of the record, then a
page query for every combination of filters.
"""

import json
import random
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import product
from pathlib import Path
from urllib.parse import urlencode

from api.database.database import open_database
from api.record.initialization import DATABASE
from benchmarks.harness import Target, benchmark_parser, finish
from benchmarks.serving.generated_record import (
    BEGIN,
    DAYS,
    GOOD,
    PHOTOGRAPHS_EACH,
    RARE,
    lot_of,
    station_shares,
    write_record,
)
from benchmarks.serving.load import closed_loop, encode_request, generators
from benchmarks.serving.server_process import ServerProcess
from benchmarks.serving.stub_service import start_stub
from segdec.errors import RunError
from segdec.runtime.cli import clean_exit

MAX_MS = 100.0
SLOWEST = 5
"""Number of reported combinations."""
RECORDS = "/v1/records"
FILTERS: dict[str, Sequence[Mapping[str, str]]] = {
    "station": [{"station": name} for name in ("line2-cam1", "workshop", "nowhere")],
    "label": [{"label": name} for name in (GOOD, "dent", RARE, "nothing")],
    "part": [{"part_id": "{part}"}],
    "reviewed": [{"reviewed": "true"}, {"reviewed": "false"}],
    "time": [{"since": "{day}", "until": "{next}"}, {"since": "{day}"}, {"until": "{day}"}],
    "before": [{"before": "{id}"}],
}
"""Filters of a page query; one of each line at a time."""
LOT = {"metadata": "lot:{lot}"}
SEARCHES: Sequence[Mapping[str, str]] = [
    *({"verdict": name} for name in ("defect", "review", "not_inspected")),
    *({"verdict": "defect", "station": name} for name in ("line2-cam1", "workshop")),
    *(LOT, {**LOT, "verdict": "defect"}, {**LOT, "station": "workshop"}, {"metadata": "lot:none"}),
    *({"reviewer": name} for name in ("anna", "nobody")),
    *({"reviewer": "anna", "verdict": "defect"}, {"reviewer": "anna", "since": "{day}", "until": "{next}"}),
    *({"version": name} for name in ("1", "3", "9")),
    *({"version": "1", "verdict": "defect"}, {"version": "1", "label": RARE, "reviewed": "true"}),
]
"""Searches of the page `/parts`."""
ALL_DAYS = {"first": "2026-01-01", "last": "2026-10-27"}
DAY = {"since": "{day}", "until": "{next}"}
REST: dict[str, tuple[str, str, Mapping[str, object]]] = {
    "names": ("GET", f"{RECORDS}/names", {}),
    "changes of a record": ("GET", f"{RECORDS}/{{id}}/audit", {}),
    "one record": ("GET", f"{RECORDS}/{{id}}", {}),
    "next review": ("POST", "/v1/review/next", {"session": "a"}),
    "next reviews of a station": ("POST", "/v1/review/next", {"session": "b", "station": "workshop"}),
    "figures of a day": ("GET", "/v1/review/statistics", DAY),
    "figures of a day at a station": ("GET", "/v1/review/statistics", {**DAY, "station": "line2-cam1"}),
    "trends of a month": ("GET", "/v1/trends", {"first": "2026-03-01", "last": "2026-03-30"}),
    "trends of all days": ("GET", "/v1/trends", ALL_DAYS),
    "trends of all days at a station": ("GET", "/v1/trends", {**ALL_DAYS, "station": "{station}"}),
    "trends of all days of a version": ("GET", "/v1/trends", {**ALL_DAYS, "version": "2"}),
    "trends of a lot": ("GET", "/v1/trends", {**ALL_DAYS, **LOT}),
    "the line": ("GET", "/v1/line", {}),
}
"""Method, path, and query or body."""
KEEP = {f"record-{kind}-days": "none" for kind in ("good", "sample", "defect", "reviewed")}
"""Disables retention, which would search the missing picture files."""


@dataclass(frozen=True)
class Query:
    """A request for a random part of the record."""

    name: str
    method: str
    path: str
    parameters: Mapping[str, object]

    def encode(self, rows: int, stations: Sequence[str], chance: random.Random) -> bytes:
        """Returns the request for a random part of a record with so many rows and these stations."""
        number = chance.randrange(rows)
        day = BEGIN + timedelta(days=chance.randrange(DAYS))
        places = {"id": number + 1, "part": f"P{number // PHOTOGRAPHS_EACH:08}"}
        places |= {"lot": lot_of(number), "station": chance.choice(stations), "busy": stations[0]}
        places |= {"day": day.isoformat(), "next": (day + timedelta(days=1)).isoformat()}
        filled = {name: str(value).format(**places) for name, value in self.parameters.items()}
        path = self.path.format(**places)
        if self.method == "GET":
            return encode_request(self.method, f"{path}?{urlencode(filled)}")
        body = json.dumps(self.parameters).encode()
        return encode_request(self.method, path, body, {"Content-Type": "application/json"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Creates the record, measures and prints; returns the exit code."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="of the record; an existing one is reused")
    parser.add_argument("--database", metavar="URL", help="an empty database (default: SQLite in the folder)")
    parser.add_argument("--rows", type=int, default=10_000_000, help="inspections (default: %(default)s)")
    parser.add_argument("--stations", type=int, metavar="N", help="equally busy ones (default: six others)")
    parser.add_argument("--times", type=int, default=20, help="requests of each query (default: %(default)s)")
    text = "only queries with this in their name, no combinations"
    parser.add_argument("--only", metavar="WORD", default="", help=text)
    options = parser.parse_args(arguments)
    url = options.database or f"sqlite:///{options.folder / DATABASE}"
    with clean_exit():
        engine = open_database(url)
        stations = station_shares(options.stations)
        write_record(engine, options.folder, options.rows, stations)
        engine.dispose()
        settings = {"record": "required", "record-folder": str(options.folder), "record-database": url}
        with start_stub(settings | KEEP | {"record-free-share": "0"}) as service, generators() as pool:
            measure = partial(ask, pool, service, options.rows, list(stations))
            measure([page({})])  # first-time work
            selected = [item for item in queries() if options.only in item.name]
            took = {item.name: measure([item] * options.times) for item in selected}
            pages = [] if options.only else list(combinations())
            each = [statistics.median(times) for times in zip(*(measure(pages) for _ in "123"), strict=True)]
    if pages:
        took[f"page by {len(pages)} combinations, median of 3"] = each
    slowest = sorted(zip(each, (page.name for page in pages), strict=True), reverse=True)[:SLOWEST]
    targets = [Target(f"{name}, ms", max(times), highest=MAX_MS) for name, times in took.items()]
    return finish(options.json, tabulate(took), targets, slowest=slowest)


def queries() -> Iterator[Query]:
    """Yields a page query for each filter, and all other queries."""
    for filters in [{}, *(filters for choices in FILTERS.values() for filters in choices), *SEARCHES]:
        yield page(filters)
    for name, request in REST.items():
        yield Query(name, *request)


def combinations() -> Iterator[Query]:
    """Yields a page query for every combination of filters."""
    for chosen in product(*([{}, *choices] for choices in FILTERS.values())):
        yield page({name: value for filters in chosen for name, value in filters.items()})


def page(filters: Mapping[str, str]) -> Query:
    """Returns a page query with filters."""
    return Query(f"page: {', '.join(map('='.join, filters.items())) or 'newest'}", "GET", RECORDS, filters)


def ask(
    pool: Executor, service: ServerProcess, rows: int, stations: Sequence[str], asked: Sequence[Query]
) -> list[float]:
    """Sends one query after the other; returns their latencies, ms.

    Raises:
        RunError: If an answer is not 200.
    """
    if not asked:
        return []
    chance = random.Random(asked[0].name)
    requests = [item.encode(rows, stations, chance) for item in asked]
    load = pool.submit(closed_loop, service.port, requests.__getitem__, clients=1, count=len(asked)).result()
    for item, exchange in zip(asked, load.exchanges, strict=True):
        if exchange.status != 200:
            raise RunError(f"{item.name}: {exchange.status} {exchange.body[:300]!r}. Expected 200.")
    return [exchange.latency_ms for exchange in load.exchanges]


def tabulate(took: Mapping[str, Sequence[float]]) -> list[dict[str, object]]:
    """Returns a row for each query."""
    return [
        {"query": name, "times": len(times), "p50 ms": statistics.median(times), "max ms": max(times)}
        for name, times in took.items()
    ]


if __name__ == "__main__":
    sys.exit(main())
