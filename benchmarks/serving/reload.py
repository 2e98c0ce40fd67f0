"""Does a reload lose or mix up requests? A model is swapped every 2 s while it is asked.

    python -m benchmarks.serving.reload [--seconds 60] [--every 2] [--json FILE]

Two versions with different weights lie in `MODELS/part/1` and `MODELS/part/2`; `labels.json` names one of
them `stable`, and every 2 s the other one, followed by a reload. 8 clients ask about the same photograph all
along.
Each answer must name a version and carry the score and the checksum of just that version.
"""

import hashlib
import json
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import NamedTuple

import httpx

from benchmarks.reporting import Target, benchmark_parser, conclude
from benchmarks.serving.load import Exchange, Load, closed_loop, encode_request, generators, latency_ms
from benchmarks.serving.server_process import ServerProcess, start_service
from benchmarks.untrained_models import TINY, export_untrained, photograph
from segdec.artifact import manifest_sha256
from segdec.images import decode_image
from segdec.runtime.cli import clean_exit
from segdec.runtime.files import write_bytes_atomic

CLIENTS = 8
NAME = "part"
VERSIONS = ("1", "2")
TOLERANCE = 1e-5
"""Largest difference between a score over HTTP and in process."""
APART = 1e-3
"""Least difference between the scores of the versions, so that they can be told apart."""


class Reload(NamedTuple):
    """One reload: the version it was to bring, its HTTP status, the version that answered right after it."""

    version: str
    status: int
    answered: str | None

    def missed(self) -> bool:
        """Tells whether another version than the one that was to come answered."""
        return self.answered != self.version


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns the exit code."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="of load (default: %(default)s)")
    parser.add_argument("--every", type=float, default=2.0, help="seconds from reload to reload (default: 2)")
    options = parser.parse_args(arguments)
    image = photograph(96, 64)
    with clean_exit(extra="tensorflow"), tempfile.TemporaryDirectory() as place, generators() as pool:
        folder, key = Path(place), secrets.token_hex()
        expected = export_versions(folder / "models", image)
        hashed = hashlib.sha256(key.encode()).hexdigest()
        (folder / "keys").write_text(f"benchmark:{hashed}\n", encoding="utf-8")
        with start_service(
            "--models", str(folder / "models"), "--admin-keys", str(folder / "keys")
        ) as service:
            before_kib = service.resident_kib()
            load, reloads = swap(pool, service, folder / "models", key, image, options.seconds, options.every)
            after_kib = service.resident_kib()
    return conclude(
        options.json,
        tabulate(load),
        targets(load, reloads, expected),
        statuses_of_reloads=dict(Counter(reload.status for reload in reloads)),
        resident_kib={"before": before_kib, "after": after_kib},
    )


def export_versions(models: Path, image: bytes) -> dict[tuple[str, str], float]:
    """Writes the versions, the first one stable; the score of `image` by version and checksum."""
    expected = {}
    for seed, version in enumerate(VERSIONS):
        folder = models / NAME / version
        folder.parent.mkdir(parents=True, exist_ok=True)
        export_untrained(TINY, folder, name=NAME, version=version, seed=seed)
        from segdec.predictor import Predictor

        pixels = decode_image(image, "photograph").pixels
        expected[version, manifest_sha256(folder)] = Predictor.load(folder).predict([pixels])[0].score
    label(models, VERSIONS[0])
    return expected


def label(models: Path, version: str) -> None:
    """Makes a version the stable one."""
    write_bytes_atomic(models / NAME / "labels.json", json.dumps({"stable": version}).encode())


def swap(
    pool: Executor,
    service: ServerProcess,
    models: Path,
    key: str,
    image: bytes,
    seconds: float,
    every: float,
) -> tuple[Load, list[Reload]]:
    """Asks and reloads; the load and the reloads."""
    request = encode_request("POST", "/v1/predict?mask=none", image, {"Content-Type": "image/png"})
    begun = time.perf_counter()
    load = pool.submit(
        closed_loop, service.port, [request], clients=CLIENTS, seconds=seconds, keep_bodies=True
    )
    reloads = []
    with httpx.Client(
        base_url=f"http://127.0.0.1:{service.port}", headers={"Authorization": f"Bearer {key}"}, timeout=60
    ) as admin:
        for number in range(1, int(seconds / every)):
            time.sleep(max(0.0, begun + number * every - time.perf_counter()))
            version = VERSIONS[number % len(VERSIONS)]
            label(models, version)
            status = admin.post(f"/v1/admin/models/{NAME}/reload").status_code
            answer = admin.post("/v1/predict?mask=none", content=image, headers={"Content-Type": "image/png"})
            reloads.append(Reload(version, status, answer.json().get("model", {}).get("version")))
    return load.result(), reloads


def tabulate(load: Load) -> list[dict[str, object]]:
    """Returns a row for each version that answered."""
    answered = [(json.loads(exchange.body)["model"]["version"], exchange) for exchange in load.of(200)]
    rows: list[dict[str, object]] = []
    for version in VERSIONS:
        exchanges = [exchange for answering, exchange in answered if answering == version]
        quantiles = {f"p{100 * q:g} ms": latency_ms(exchanges, q) for q in (0.5, 0.99, 1.0)}
        rows.append({"version": version, "answers": len(exchanges), **quantiles})
    return rows


def targets(load: Load, reloads: Sequence[Reload], expected: Mapping[tuple[str, str], float]) -> list[Target]:
    """Returns what was to be reached."""
    scores = sorted(expected.values())
    failed = len(load.exchanges) - len(load.of(200))
    return [
        Target("requests that failed", failed, highest=0),
        Target("answers that are not one version's", count_mixed(load.of(200), expected), highest=0),
        Target("reloads that failed", sum(reload.status != 200 for reload in reloads), highest=0),
        Target("reloads after which another version answered", sum(map(Reload.missed, reloads)), highest=0),
        Target("difference of the versions' scores", scores[-1] - scores[0], lowest=APART),
    ]


def count_mixed(exchanges: Iterable[Exchange], expected: Mapping[tuple[str, str], float]) -> int:
    """Counts answers whose version, checksum and score do not belong together."""
    mixed = 0
    for exchange in exchanges:
        answer = json.loads(exchange.body)
        score = expected.get((answer["model"]["version"], answer["model"]["sha256"]), float("inf"))
        mixed += abs(answer["decision"]["score"] - score) > TOLERANCE
    return mixed


if __name__ == "__main__":
    sys.exit(main())
