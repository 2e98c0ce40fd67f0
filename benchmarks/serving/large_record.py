"""How fast a record of ten million inspections answers: pages, one of them, the next review, a day's figures.

    python -m benchmarks.serving.large_record --folder FOLDER [--rows 10000000] [--times 20] [--json FILE]
    python -m benchmarks.serving.large_record --folder FOLDER --database postgresql://USER:PASSWORD@HOST/NAME

The record is made first, by `generated_record`, in half an hour and 15 GB with SQLite. What is there of it is
used again: one that was killed goes on. The service has a stub for its network. One client asks it, each time
about another place of the record; then it asks for a page by every combination of filters.
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

from api.records.database import open_database
from api.records.initialization import DATABASE
from benchmarks.reporting import Target, benchmark_parser, conclude
from benchmarks.serving.generated_record import BEGIN, DAYS, GOOD, PHOTOGRAPHS_EACH, RARE, write_record
from benchmarks.serving.load import closed_loop, encode_request, generators
from benchmarks.serving.recording import start_stub
from benchmarks.serving.server_process import ServerProcess
from segdec.errors import RunError
from segdec.runtime.cli import clean_exit

MAX_MS = 100.0
SLOWEST = 5
"""Combinations that are named."""
RECORDS = "/v1/records"
FILTERS: dict[str, Sequence[Mapping[str, str]]] = {
    "station": [{"station": name} for name in ("line2-cam1", "workshop", "nowhere")],
    "label": [{"label": name} for name in (GOOD, "dent", RARE, "nothing")],
    "part": [{"part_id": "{part}"}],
    "reviewed": [{"reviewed": "true"}, {"reviewed": "false"}],
    "time": [{"since": "{day}", "until": "{next}"}, {"since": "{day}"}, {"until": "{day}"}],
    "before": [{"before": "{id}"}],
}
"""What a page can be asked for, one of each line at a time."""
DAY = {"since": "{day}", "until": "{next}"}
REST: dict[str, tuple[str, str, Mapping[str, object]]] = {
    "one record": ("GET", f"{RECORDS}/{{id}}", {}),
    "next review": ("POST", "/v1/review/next", {"session": "a"}),
    "next reviews of a station": (
        "POST",
        "/v1/review/next",
        {"session": "b", "station": "workshop", "count": 5},
    ),
    "figures of a day": ("GET", "/v1/review/statistics", DAY),
    "figures of a day at a station": ("GET", "/v1/review/statistics", {**DAY, "station": "line2-cam1"}),
    "the line": ("GET", "/v1/line", {}),
}
"""Method, path, and query or body."""
KEEP = {f"record-{kind}-days": "none" for kind in ("good", "sample", "defect", "reviewed")}
"""Else retention would look for the files of the pictures."""


@dataclass(frozen=True)
class Question:
    """A request that is about another place of the record each time."""

    name: str
    method: str
    path: str
    told: Mapping[str, object]

    def encode(self, rows: int, chance: random.Random) -> bytes:
        """Returns it about a place by chance, in a record of so many rows."""
        number = chance.randrange(rows)
        day = BEGIN + timedelta(days=chance.randrange(DAYS))
        places = {"id": number + 1, "part": f"P{number // PHOTOGRAPHS_EACH:08}"}
        places |= {"day": day.isoformat(), "next": (day + timedelta(days=1)).isoformat()}
        told = {name: str(value).format(**places) for name, value in self.told.items()}
        path = self.path.format(**places)
        if self.method == "GET":
            return encode_request(self.method, f"{path}?{urlencode(told)}")
        body = json.dumps(self.told).encode()
        return encode_request(self.method, path, body, {"Content-Type": "application/json"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Makes the record, measures and prints; returns the exit code."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="of the record; used again if it is there")
    parser.add_argument("--database", metavar="URL", help="of an empty one (default: SQLite in the folder)")
    parser.add_argument("--rows", type=int, default=10_000_000, help="inspections (default: %(default)s)")
    parser.add_argument("--times", type=int, default=20, help="that each is asked (default: %(default)s)")
    parser.add_argument(
        "--only", metavar="WORD", default="", help="ask only what has this in its name, no combinations"
    )
    options = parser.parse_args(arguments)
    url = options.database or f"sqlite:///{options.folder / DATABASE}"
    with clean_exit():
        engine = open_database(url)
        write_record(engine, options.folder, options.rows)
        engine.dispose()
        settings = {"record": "required", "record-folder": str(options.folder), "record-database": url}
        with start_stub(settings | KEEP | {"record-free-share": "0"}) as service, generators() as pool:
            measure = partial(ask, pool, service, options.rows)
            measure([page({})])  # what is done once
            asked = [question for question in questions() if options.only in question.name]
            took = {question.name: measure([question] * options.times) for question in asked}
            pages = [] if options.only else list(combinations())
            each = [statistics.median(times) for times in zip(*(measure(pages) for _ in "123"), strict=True)]
    if pages:
        took[f"page by {len(pages)} combinations, median of 3"] = each
    slowest = sorted(zip(each, (page.name for page in pages), strict=True), reverse=True)[:SLOWEST]
    targets = [Target(f"{name}, ms", max(times), highest=MAX_MS) for name, times in took.items()]
    return conclude(options.json, tabulate(took), targets, slowest=slowest)


def questions() -> Iterator[Question]:
    """Yields a page by each filter alone, and what else is asked of a record."""
    for query in [{}, *(query for queries in FILTERS.values() for query in queries)]:
        yield page(query)
    for name, asked in REST.items():
        yield Question(name, *asked)


def combinations() -> Iterator[Question]:
    """Yields a page by every combination of filters."""
    for chosen in product(*([{}, *queries] for queries in FILTERS.values())):
        yield page({name: value for query in chosen for name, value in query.items()})


def page(query: Mapping[str, str]) -> Question:
    """Asks for a page by filters."""
    return Question(f"page: {', '.join(map('='.join, query.items())) or 'newest'}", "GET", RECORDS, query)


def ask(pool: Executor, service: ServerProcess, rows: int, asked: Sequence[Question]) -> list[float]:
    """Asks one question after the other; returns what each took, ms.

    Raises:
        RunError: If an answer is not good.
    """
    if not asked:
        return []
    chance = random.Random(asked[0].name)
    requests = [question.encode(rows, chance) for question in asked]
    load = pool.submit(
        closed_loop, service.port, requests.__getitem__, clients=1, count=len(requests)
    ).result()
    for question, exchange in zip(asked, load.exchanges, strict=True):
        if exchange.status != 200:
            raise RunError(f"{question.name}: {exchange.status} {exchange.body[:300]!r}. Expected 200.")
    return [exchange.latency_ms for exchange in load.exchanges]


def tabulate(took: Mapping[str, Sequence[float]]) -> list[dict[str, object]]:
    """Returns a row for each question."""
    return [
        {"asked": name, "times": len(times), "p50 ms": statistics.median(times), "max ms": max(times)}
        for name, times in took.items()
    ]


if __name__ == "__main__":
    sys.exit(main())
