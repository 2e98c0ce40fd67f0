"""Requests a second of the service and of other serving frameworks, all with the same stub model.

    python -m benchmarks.serving.frameworks [--rounds 7] [--seconds 5] [--busy 0] [--json FILE]

All servers are asked in turn, by 8 clients on keep-alive connections; those that are not asked are paused,
because some take processor time even when they are idle. Each has one worker, decodes the same grey PNG,
calls the stub and answers label, score and mask (PNG in base64) as JSON; the service checks the photograph
and finds regions besides. The photograph comes as each framework takes it by nature: raw (ours), as a form's
file (BentoML), as base64 in JSON (LitServe, MLServer).

A call of the stub takes 1 ms, whatever the batch, as an accelerator does for a few photographs. Every server
runs as it comes: ours forms batches of what is waiting, the peers take one photograph at a time. The table
shows the peers with their own batching of up to 8 too; the targets are about the servers as they come.
MLServer infers in its own process, not in a worker. With `--each` the stub takes 1 ms for every photograph,
so that batches gain nothing. With `--busy` that many processes count beside it, as on a machine with other
work: who takes less processor time for an answer, which is shown too, has to wait less often.
"""

import base64
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.environments import peer_program
from benchmarks.reporting import Target, benchmark_parser, conclude, interleave, spread
from benchmarks.serving.load import Load, closed_loop, encode_request, generators, latency_ms
from benchmarks.serving.peers.work import MAX_BATCH, MODEL_MS, MODEL_MS_EACH
from benchmarks.serving.server_process import ServerProcess, free_port
from benchmarks.untrained_models import photograph
from segdec.errors import RunError
from segdec.runtime.cli import clean_exit

PEERS = Path(__file__).parent / "peers"
CLIENTS = 8
BATCH = 8
OURS = "segdec"
BARE = "uvicorn, no work"
TIMES = {"litserve": 1.5, "bentoml": 2.0, "mlserver": 1.3}
"""How many times as fast as each peer the service shall be."""
PROCESSOR_SHARE = {"litserve": 0.6}
"""The most processor time that the service may take for an answer, of that which a peer takes."""
HEADROOM = 3.0
"""How many times as fast as the service the bare server shall be, or the load generator may be the limit."""
BOUNDARY = "photograph"


@dataclass
class Asked:
    """A server, what it is asked, and what came of it, the round before the measured ones included."""

    server: ServerProcess
    request: bytes
    loads: list[Load] = field(default_factory=list)
    processor_s: list[float] = field(default_factory=list)

    def processor_ms(self) -> float:
        """Returns the processor time of an answer, in milliseconds."""
        answers = sum(len(load.of(200)) for load in self.loads[1:])
        return sum(self.processor_s[1:]) * 1000 / answers


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns the exit code."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="measurements of each (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=5.0, help="a measurement (default: %(default)s)")
    parser.add_argument("--side", type=int, default=64, help="of the photograph, px (default: %(default)s)")
    parser.add_argument("--busy", type=int, default=0, help="processes that count beside it (default: 0)")
    parser.add_argument("--each", action="store_true", help="the stub takes 1 ms for every photograph")
    parser.add_argument(
        "--peers", nargs="*", choices=TIMES, default=list(TIMES), help="compare with these (default: all)"
    )
    options = parser.parse_args(arguments)
    stub = {MODEL_MS: "0", MODEL_MS_EACH: "1"} if options.each else {MODEL_MS: "1", MODEL_MS_EACH: "0"}
    image = photograph(options.side, options.side)
    with clean_exit(), ExitStack() as stack:
        pool = stack.enter_context(generators())
        asked = {}
        for name, server, request in competitors(stack, options.peers, image, stub):
            stack.enter_context(server).pause()
            asked[name] = Asked(server, request)
        stack.enter_context(busy_processes(options.busy))
        measured = interleave(
            {name: partial(ask, pool, asked[name], options.seconds) for name in asked}, options.rounds
        )
    return conclude(
        options.json,
        tabulate(measured, asked),
        targets(measured, asked, options.peers),
        stub=stub,
        side_px=options.side,
        busy_processes=options.busy,
    )


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Keeps `count` processes busy until the block ends."""
    with ExitStack() as stack:
        for _ in range(count):
            process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield


def competitors(
    stack: ExitStack, peers: Sequence[str], image: bytes, stub: Mapping[str, str]
) -> Iterator[tuple[str, ServerProcess, bytes]]:
    """Yields name, server and request of each."""
    bare = ServerProcess([sys.executable, "-m", "benchmarks.serving.peers.bare_server", "{port}"], ready="/")
    yield BARE, bare, ask_ours(image)
    yield OURS, start_ours(stub), ask_ours(image)
    for peer in peers:
        for batch in (1, BATCH):
            server = STARTS[peer](stack, {**stub, MAX_BATCH: str(batch)})
            yield variant(peer, batch), server, REQUESTS[peer](image)


def variant(peer: str, batch: int) -> str:
    """Returns the peer's name in the table."""
    return f"{peer}, batches of {batch}" if batch > 1 else peer


def ask(pool: Executor, asked: Asked, seconds: float) -> float:
    """Measures good answers a second once; the measurement is added to `asked`.

    Raises:
        RunError: If an answer is not good.
    """
    server, request = asked.server, asked.request
    before_s = server.processor_s()
    server.resume()
    load = pool.submit(closed_loop, server.port, [request], clients=CLIENTS, seconds=seconds).result()
    server.pause()
    if set(load.statuses()) != {200}:
        bad = next(exchange for exchange in load.exchanges if exchange.status != 200)
        raise RunError(f"Statuses {load.statuses()}; expected 200 only. One said: {bad.body[:500]!r}")
    asked.loads.append(load)
    asked.processor_s.append(server.processor_s() - before_s)
    return load.rate


def tabulate(measured: Mapping[str, Sequence[float]], asked: Mapping[str, Asked]) -> list[dict[str, object]]:
    """Returns a row for each competitor."""
    ours = spread(measured[OURS])["median"]
    rows: list[dict[str, object]] = []
    for name, rates in measured.items():
        exchanges = [exchange for load in asked[name].loads[1:] for exchange in load.exchanges]
        row: dict[str, object] = {"requests/s": name, **spread(rates)}
        row["segdec is … times as fast"] = ours / spread(rates)["median"]
        row["p50 ms"], row["p99 ms"] = latency_ms(exchanges, 0.5), latency_ms(exchanges, 0.99)
        row["processor ms each"] = asked[name].processor_ms()
        rows.append(row)
    return rows


def targets(
    measured: Mapping[str, Sequence[float]], asked: Mapping[str, Asked], peers: Sequence[str]
) -> list[Target]:
    """Returns what was to be reached against each peer as it comes."""
    median = {name: spread(rates)["median"] for name, rates in measured.items()}
    found = [Target("load generator's headroom over segdec", median[BARE] / median[OURS], lowest=HEADROOM)]
    for peer in peers:
        found.append(Target(f"segdec / {peer}", median[OURS] / median[peer], lowest=TIMES[peer]))
        if peer in PROCESSOR_SHARE:
            share = asked[OURS].processor_ms() / asked[peer].processor_ms()
            found.append(Target(f"processor time, segdec / {peer}", share, highest=PROCESSOR_SHARE[peer]))
    return found


# === How each is started ===


def start_ours(variables: Mapping[str, str]) -> ServerProcess:
    """Starts the service with the stub."""
    command = [sys.executable, "-m", "benchmarks.serving.stub_service", "{port}"]
    return ServerProcess(command, environment=variables)


def _start_litserve(_: ExitStack, variables: Mapping[str, str]) -> ServerProcess:
    python = peer_program(PEERS / "litserve.txt")
    command = [python, "-m", "benchmarks.serving.peers.litserve_service", "{port}"]
    return ServerProcess(command, ready="/health", environment=variables)


def _start_bentoml(_: ExitStack, variables: Mapping[str, str]) -> ServerProcess:
    words = ("serve", "benchmarks.serving.peers.bentoml_service:Inspection", "--host", "127.0.0.1", "--port")
    command = [peer_program(PEERS / "bentoml.txt", "bentoml"), *words, "{port}"]
    silent = {"BENTOML_DO_NOT_TRACK": "True"}
    return ServerProcess(command, environment={**variables, **silent})


def _start_mlserver(stack: ExitStack, variables: Mapping[str, str]) -> ServerProcess:
    """With inference in the server's own process: MLServer 1.7.1's workers do not start with uvloop 0.23."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    batch = int(variables[MAX_BATCH])
    batching = {"max_batch_size": batch, "max_batch_time": 0.001} if batch > 1 else {}
    model = {"name": "stub", "implementation": "benchmarks.serving.peers.mlserver_runtime.Inspection"}
    (folder / "model-settings.json").write_text(json.dumps({**model, **batching}), encoding="utf-8")
    settings = {"MLSERVER_HOST": "127.0.0.1", "MLSERVER_HTTP_PORT": "{port}", "MLSERVER_DEBUG": "false"}
    settings |= {"MLSERVER_GRPC_PORT": str(free_port()), "MLSERVER_METRICS_PORT": str(free_port())}
    settings |= {"MLSERVER_PARALLEL_WORKERS": "0", "MLSERVER_LOGGING_SETTINGS": ""}
    command = [peer_program(PEERS / "mlserver.txt", "mlserver"), "start", str(folder)]
    return ServerProcess(command, ready="/v2/models/stub/ready", environment={**variables, **settings})


STARTS: dict[str, Callable[[ExitStack, Mapping[str, str]], ServerProcess]] = {
    "litserve": _start_litserve,
    "bentoml": _start_bentoml,
    "mlserver": _start_mlserver,
}


# === How each is asked ===


def ask_ours(image: bytes) -> bytes:
    """Encodes a request for the photograph as it is."""
    return encode_request("POST", "/v1/predict", image, {"Content-Type": "image/png"})


def _ask_litserve(image: bytes) -> bytes:
    return _json_request("/predict", {"image": base64.b64encode(image).decode("ascii")})


def _ask_bentoml(image: bytes) -> bytes:
    head = 'Content-Disposition: form-data; name="images"; filename="part.png"\r\nContent-Type: image/png'
    body = f"--{BOUNDARY}\r\n{head}\r\n\r\n".encode() + image + f"\r\n--{BOUNDARY}--\r\n".encode()
    return encode_request(
        "POST", "/predict", body, {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    )


def _ask_mlserver(image: bytes) -> bytes:
    encoded = base64.b64encode(image).decode("ascii")
    tensor = {"name": "image", "shape": [1, 1], "datatype": "BYTES", "data": [encoded]}
    return _json_request("/v2/models/stub/infer", {"inputs": [tensor]})


def _json_request(path: str, content: object) -> bytes:
    return encode_request("POST", path, json.dumps(content).encode(), {"Content-Type": "application/json"})


REQUESTS: dict[str, Callable[[bytes], bytes]] = {
    "litserve": _ask_litserve,
    "bentoml": _ask_bentoml,
    "mlserver": _ask_mlserver,
}


if __name__ == "__main__":
    sys.exit(main())
