"""Failures while inspections are recorded: answered inspections are stored, and none is stored twice."""

import random

import pytest

from tests.api.record.recording_clients import Clients, RecordingService, check


@pytest.mark.slow
def test_answered_inspections_survive_kills_of_the_service(database_url, tmp_path):
    folder, clients, moments = tmp_path / "record", Clients(), random.Random(0)
    service = RecordingService(folder, database_url)
    clients.start(service)
    for _ in range(2):
        clients.wait_for_answers(moments.randrange(1, 40))
        clients.ended.wait(moments.uniform(0.0, 0.05))
        service.kill()
        service = RecordingService(folder, database_url)
        clients.url = service.url
    clients.end()
    service.stop()
    assert check(folder, database_url, clients) >= len(clients.answers) > 0


@pytest.mark.slow
def test_answered_inspections_survive_a_stop_of_the_database(own_postgres, tmp_path):
    url, folder, clients = own_postgres.url, tmp_path / "record", Clients()
    service = RecordingService(folder, url)
    clients.start(service)
    for _ in range(2):
        clients.wait_for_answers(20)
        own_postgres.stop("immediate")
        clients.wait_for_rejections(8)
        own_postgres.start()
    clients.wait_for_answers(20)
    clients.end()
    service.stop()
    assert check(folder, url, clients) >= len(clients.answers) >= 60
