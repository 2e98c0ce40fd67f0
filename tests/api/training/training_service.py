"""A service with a data set and a key for a training worker, in the process of the test."""

import hashlib
import shutil
from functools import partial

import httpx

from api.app import create_app
from api.data_sets.annotations import NewAnnotation, annotate
from api.data_sets.class_masks import make_class_mask
from api.data_sets.definitions import create_data_set
from api.data_sets.photographs import NewPhotograph, add_photograph
from api.data_sets.versions import create_version, take_snapshot
from api.settings import Settings
from segdec import __version__
from segdec.annotation_content import AnnotationContent
from segdec.training_schemas import WorkerIdentity
from tests.api.data_sets.filled_data_set import CLASSES, NOW, mask_of, photograph_file
from tests.api.engineer_client import EngineerClient
from training.worker.file_sets import upload_files
from training.worker.service_connection import ServiceConnection

TRAIN_KEY, OTHER_KEY = "of-a-worker", "of-another-worker"
JOBS = "/v1/training/jobs"
LABELS = {
    1: ("good", None),
    2: ("scratch", mask_of((1, 4, 4), (255, 20, 20))),
    3: ("dent", mask_of((2, 8, 8))),
    4: ("good", None),
    5: ("good", None),
}
"""Label and mask of each photograph."""


class TrainingService(EngineerClient):
    """A client with the key of an engineer, and connections with that of a worker."""

    def __init__(self, folder, models=None):
        folder.mkdir(exist_ok=True)
        keys = folder / "train.keys"
        digests = {
            name: hashlib.sha256(key.encode()).hexdigest()
            for name, key in {"gpu": TRAIN_KEY, "lab": OTHER_KEY}.items()
        }
        keys.write_text("\n".join(f"{name}:{digest}" for name, digest in digests.items()))
        super().__init__(folder, train_keys=keys)
        if models is not None:
            settings = self.app.state.settings.model_dump() | {"model": None, "models": models}
            self.app = create_app(Settings.model_validate({**settings, "batch_sizes": (1,)}))

    @property
    def service(self):
        return self.app.state.service.inspection

    @property
    def features(self):
        return self.app.state.service.features

    def fill(self, name="Brackets", labels=LABELS):
        """Makes a data set with a version; returns its id."""
        return self.run(partial(self._fill, name, labels))

    async def _fill(self, name, labels):
        store = self.features.data_sets
        number = await store.write(create_data_set, name, CLASSES, "Ada", NOW)
        for photograph, (label, mask) in labels.items():
            new = NewPhotograph(photograph_file(photograph), name=f"part {photograph}")
            added = await store.write(add_photograph, number, new, "Ada", NOW, files=[new.file])
            file = None if mask is None else make_class_mask(mask, label, CLASSES)
            content = AnnotationContent(label=label)
            annotation = NewAnnotation(content, file and file.sha256, "drawn", "Ada", NOW)
            files = [] if file is None else [file]
            await store.write(annotate, number, added.id, annotation, None, None, files=files)
        snapshot = await store.read(take_snapshot, number)
        await store.write(create_version, number, snapshot, "", "Ada", NOW, files=[snapshot.manifest])
        return number

    def order(self, data_set, model="brackets", **settings):
        """Orders a job; returns its id."""
        body = {"data_set": data_set, "data_set_version": 1, "model": model, **settings}
        answer = self.post(JOBS, json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()["id"]

    def finish_job(self, model, folder, damage=False, data_set=None):
        """Orders a job and uploads the model in `folder` as its result; returns the id of the job."""
        job_id = self.order(data_set or self.data_set, model=model)
        self.send_model(folder, damage)
        return job_id

    def send_model(self, folder, damage=False):
        """Leases the oldest job and uploads the model in `folder` as its result."""
        with self.connect() as worker:
            job = worker.lease(WorkerIdentity(name="gpu-1", version=__version__))
            copy = self.app.state.settings.record_folder.parent / f"result-{job.id}"
            shutil.copytree(folder, copy / "model")
            if damage:
                changed = next(path for path in (copy / "model" / "tensorflow").rglob("*.pb"))
                changed.write_bytes(changed.read_bytes() + b"x")
            paths = sorted(path for path in copy.rglob("*") if path.is_file())
            worker.send_result(job, upload_files(worker, job, copy, paths, lambda: None))
            worker.end(job, "done", "", {})

    def show(self, job_id):
        answer = self.get(f"{JOBS}/{job_id}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def texts(self, job_id):
        """The sentences about the states of a job."""
        events = self.get(f"{JOBS}/{job_id}/events").json()["events"]
        return [event["content"] for event in events if event["kind"] == "state"]

    def connect(self, key=TRAIN_KEY, change=lambda _: None):
        """Returns the connection of a worker; `change` may answer a request instead of the service."""

        def answer(request):
            if (other := change(request)) is not None:
                return other
            headers = {name: value for name, value in request.headers.items() if name != "host"}
            words = {"content": request.content, "headers": headers}
            done = super(EngineerClient, self).request(request.method, str(request.url), **words)
            return httpx.Response(done.status_code, headers=done.headers, content=done.content)

        transport = httpx.MockTransport(answer)
        return ServiceConnection("http://test", key, transport=transport, sleep=lambda _: None)
