"""A person who labels and orders trainings through the API, and remembers what the service has confirmed."""

import base64
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import httpx
import numpy as np
from numpy.typing import NDArray

from api.training.jobs import MIN_GOOD
from segdec.errors import RunError
from segdec.images import encode_png

SETS, JOBS = "/v1/data-sets", "/v1/training/jobs"
CLASSES = ("scratch", "dent")
MAX_OPEN_JOBS = 2
ENDED = ("done", "failed", "cancelled")
PATIENCE_S = 180.0
"""Time after which a request that is not answered is an error."""
PAUSE_S = 0.1


@dataclass(frozen=True)
class ConfirmedLabel:
    """An annotation whose request was answered: its id, label and mask."""

    id: int
    label: str
    mask: NDArray[np.uint8] | None


class RepeatingClient:
    """Sends each request until the service answers it; it may be killed meanwhile."""

    def __init__(self, url: str, timeout_s: float = 20.0) -> None:
        self._http = httpx.Client(base_url=url, timeout=timeout_s, trust_env=False)
        self.repeated = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._http.close()

    def send(self, method: str, path: str, **body: Any) -> httpx.Response:
        """Returns the answer.

        Raises:
            RunError: If it is an error that another attempt does not remove, or none arrives.
        """
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            try:
                answer = self._http.request(method, path, **body)
            except httpx.TransportError:
                answer = None
            if answer is not None and answer.status_code not in (503, 504):
                if answer.is_error:
                    raise RunError(f"{method} {path}: {answer.status_code} {answer.text[:300]}")
                return answer
            self.repeated += 1
            time.sleep(PAUSE_S)
        raise RunError(f"{method} {path} was not answered for {PATIENCE_S:g} s.")

    def get(self, path: str) -> Any:
        """Returns the JSON of an answer."""
        return self.send("GET", path).json()


@dataclass
class ConfirmedDataSet:
    """A data set, and what the service has confirmed about it.

    Attributes:
        id: Of the data set.
        labels: The confirmed annotations of each photograph, in their order.
        versions: Digest of each confirmed version.
    """

    id: int
    labels: dict[int, list[ConfirmedLabel]] = field(default_factory=dict)
    versions: dict[int, str] = field(default_factory=dict)

    @classmethod
    def create(cls, client: RepeatingClient, name: str, classes: Sequence[str]) -> Self:
        """Creates an empty one."""
        return cls(client.send("POST", SETS, json={"name": name, "classes": list(classes)}).json()["id"])

    def add_photograph(self, client: RepeatingClient, name: str, png: bytes) -> int:
        """Adds a photograph; returns its id."""
        sent = {"content": png, "headers": {"Content-Type": "image/png"}}
        answer = client.send("POST", f"{SETS}/{self.id}/photographs?name={name}.png", **sent)
        number: int = answer.json()["photograph"]["id"]
        self.labels[number] = []
        return number

    def annotate(
        self, client: RepeatingClient, photograph: int, label: str, mask: NDArray[np.uint8] | None
    ) -> None:
        """Sends an annotation; the values of the mask are the classes, from 1."""
        known = self.labels[photograph]
        body = {
            "label": label,
            "mask": None if mask is None else base64.b64encode(encode_png(mask)).decode(),
            "based_on": known[-1].id if known else None,
        }
        path = f"{SETS}/{self.id}/photographs/{photograph}/annotation"
        answer = client.send("PUT", path, json=body).json()
        known.append(ConfirmedLabel(answer["annotation_id"], label, mask))

    def make_version(self, client: RepeatingClient) -> int:
        """Makes a version; returns its number."""
        made = client.send("POST", f"{SETS}/{self.id}/versions", json={}).json()
        self.versions[made["number"]] = made["digest"]
        number: int = made["number"]
        return number


class Labeller(threading.Thread):
    """Labels random photographs, makes versions and orders trainings until `stop`, inside a `with` block.

    The first `MIN_GOOD` photographs stay good.

    Args:
        url: Of the service.
        data_set: With more photographs than that.
        side: Of all photographs, px.
        seed: Of the decisions.

    Attributes:
        data_set: The data set.
        jobs: The confirmed jobs.
        failure: Why it ended early; None: it did not.
        client: Sends the requests.
    """

    def __init__(self, url: str, data_set: ConfirmedDataSet, side: int, seed: int) -> None:
        super().__init__(daemon=True)
        self.data_set = data_set
        self._side, self._chance = side, random.Random(seed)
        self._stopping = threading.Event()
        self.client = RepeatingClient(url)
        self.jobs: set[int] = set()
        self.failure: str | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._stopping.set()
        self.client.__exit__()

    def run(self) -> None:
        """Works until `stop`."""
        try:
            photographs = list(self.data_set.labels)
            for photograph in photographs[:MIN_GOOD]:
                self.data_set.annotate(self.client, photograph, "good", None)
            while not self._stopping.is_set():
                self._label(self._chance.choice(photographs[MIN_GOOD:]))
                if self._chance.random() < 0.1:
                    self._make_version()
        except RunError as error:
            self.failure = str(error)

    def stop(self) -> None:
        """Ends after the request in progress is answered.

        Raises:
            RunError: If an answer was an error.
        """
        self._stopping.set()
        self.join()
        if self.failure is not None:
            raise RunError(self.failure)

    def _label(self, photograph: int) -> None:
        label = self._chance.choice(("good", *CLASSES))
        mask = None if label == "good" else self._make_mask(label)
        self.data_set.annotate(self.client, photograph, label, mask)

    def _make_mask(self, label: str) -> NDArray[np.uint8]:
        mask = np.zeros((self._side, self._side), np.uint8)
        top, left = self._chance.randrange(self._side - 4), self._chance.randrange(self._side - 4)
        mask[top : top + 4, left : left + 4] = CLASSES.index(label) + 1
        return mask

    def _make_version(self) -> None:
        number = self.data_set.make_version(self.client)
        jobs = self.client.get(JOBS)["jobs"]
        if sum(job["state"] not in ENDED for job in jobs) < MAX_OPEN_JOBS:
            body = {"data_set": self.data_set.id, "data_set_version": number, "model": "brackets"}
            self.jobs.add(self.client.send("POST", JOBS, json=body).json()["id"])
