import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from api.inference.watchdog import EXIT_AFTER_S, LOAD_FACTOR, Watchdog
from tests.api.conftest import PNG, ServiceClient

AT_ONCE = 1e-9
NEVER = 1e9


@pytest.fixture
def clock() -> SimpleNamespace:
    """`now` is the time of the watchdog."""
    return SimpleNamespace(now=0.0)


@pytest.fixture
def watchdog(clock: SimpleNamespace) -> Watchdog:
    return Watchdog(stall_s=10, restart_after_s=30, clock=lambda: clock.now)


@pytest.mark.parametrize(("step", "factor"), [("infer", 1), ("load", LOAD_FACTOR)])
def test_long_step_is_stalled_then_lost_then_the_process_exits(watchdog, clock, step, factor):
    for _ in range(10):
        with watchdog.watch(step):
            clock.now += 9 * factor
            assert not watchdog.stalled
    assert watchdog.describe() == "Nothing hangs."
    clock.now = 0
    with watchdog.watch(step):
        states = []
        for limit in (10 * factor, 30 * factor, 30 * factor + EXIT_AFTER_S):
            for clock.now in (limit, limit + 1):
                states.append([watchdog.stalled, watchdog.needs_restart, watchdog.should_exit].count(True))
    assert states == [0, 1, 1, 2, 2, 3]
    assert not (watchdog.stalled or watchdog.needs_restart or watchdog.should_exit)


def test_oldest_step_of_several_threads_is_reported(watchdog, clock):
    with watchdog.watch("decode"):
        clock.now = 20
        with watchdog.watch("decode"), watchdog.watch("encode"):
            clock.now = 25
            ages = [watchdog.running_s(step) for step in ("decode", "infer", "encode", "load")]
            assert ages == [25, 0, 5, 0]
            assert watchdog.describe() == "The step 'decode' has been running for 25 s, longer than 10 s."
        assert watchdog.stalled


def test_start_and_end_of_a_stall_are_logged_once(watchdog, clock, caplog):
    caplog.set_level(logging.WARNING, logger="api")
    with watchdog.watch("infer"):
        for clock.now in (1, 11, 12, 13):
            watchdog.report()
    watchdog.report()
    watchdog.report()
    assert [record.getMessage() for record in caplog.records] == [
        "Not ready: The step 'infer' has been running for 11 s, longer than 10 s.",
        "The stalled step 'infer' has ended",
    ]


# === The service ===


@contextmanager
def hung(app, predictor, part: bytes) -> Iterator[tuple[ServiceClient, Callable[[], None]]]:
    """The service while its engine hangs, and a function that ends this."""
    with ServiceClient(app) as client:
        predictor.block()
        asking = threading.Thread(target=lambda: client.post("/v1/predict", content=part, headers=PNG))
        asking.start()

        def unblock() -> None:
            predictor.gate.set()
            asking.join()

        try:
            assert predictor.entered.acquire(timeout=30)
            yield client, unblock
        finally:
            unblock()


def code(client: ServiceClient, path: str) -> tuple[int, str | None]:
    answer = client.get(path)
    return answer.status_code, answer.json().get("code")


def metric(client: ServiceClient, name: str) -> float:
    lines = client.get("/metrics").text.splitlines()
    return float(next(line.rpartition(" ")[2] for line in lines if line.startswith(f"{name} ")))


def test_service_with_a_hung_engine_is_not_ready(make_app, predictor, part):
    app = make_app(engine_timeout_s=AT_ONCE, engine_lost_s=NEVER)
    with hung(app, predictor, part) as (client, unblock):
        assert code(client, "/readyz") == code(client, "/v2/health/ready") == (503, "stalled")
        assert code(client, "/livez") == code(client, "/v2/health/live") == (200, None)
        refused = client.post("/v1/predict", content=part, headers=PNG)
        assert (refused.status_code, refused.json()["code"]) == (503, "stalled")
        assert refused.headers["Retry-After"] == "1"
        assert "'infer'" in refused.json()["detail"]
        assert (metric(client, "segdec_ready"), metric(client, "segdec_stalled")) == (0, 1)
        assert metric(client, 'segdec_running_seconds{step="infer"}') > 0
        assert metric(client, 'segdec_rejections_total{reason="stalled"}') >= 1
        unblock()
        assert code(client, "/readyz") == (200, None)
        assert client.post("/v1/predict", content=part, headers=PNG).status_code == 200
        assert (metric(client, "segdec_ready"), metric(client, "segdec_stalled")) == (1, 0)


def test_service_with_a_lost_engine_is_not_alive(make_app, predictor, part):
    app = make_app(engine_timeout_s=AT_ONCE, engine_lost_s=AT_ONCE)
    with hung(app, predictor, part) as (client, _):
        assert code(client, "/livez") == code(client, "/v2/health/live") == (503, "stalled")
    assert not app.state.service.inspection.watchdog.needs_restart
