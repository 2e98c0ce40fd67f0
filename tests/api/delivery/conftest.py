import pytest

from api.metrics import Metrics
from tests.api.delivery.outbox_messages import EventSource


@pytest.fixture
def metrics():
    return Metrics(lambda: 0, lambda: True)


@pytest.fixture
def line(engine):
    return EventSource(engine)
