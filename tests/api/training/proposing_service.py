"""Services whose models propose labels for a data set, in the process of the test."""

import time

from tests.api.conftest import PNG
from tests.api.engineer_client import EngineerClient
from tests.api.training.training_service import TrainingService


class Proposing:
    """What a client does with proposals; `data_set` is the id of the data set."""

    data_set = 1

    @property
    def path(self):
        return f"/v1/data-sets/{self.data_set}"

    def add(self, name, content, label=None):
        """Adds a photograph and its label; returns its id."""
        sent = self.post(f"{self.path}/photographs?name={name}", content=content, headers=PNG)
        assert sent.status_code == 201, sent.text
        number = sent.json()["photograph"]["id"]
        if label is not None:
            body = {"label": label, "based_on": None}
            annotated = self.put(f"{self.path}/photographs/{number}/annotation", json=body)
            assert annotated.status_code == 200, annotated.text
        return number

    def propose(self, **asked):
        """Starts a run; returns it after its end."""
        started = self.post(f"{self.path}/proposals", json=asked)
        assert started.status_code == 202, started.json()
        return self.wait_for_proposals()

    def wait_for_proposals(self):
        """Returns the latest run after its end."""
        for _ in range(6000):
            run = self.get(f"{self.path}/proposals").json()
            if run is not None and run["state"] != "running":
                return run
            time.sleep(0.05)
        raise AssertionError(run)


class ProposingClient(Proposing, EngineerClient):
    """A client of a service with one model."""


class ProposingService(Proposing, TrainingService):
    """A client of a service whose trained models propose, too."""
