"""A job that the real `fit` trains, on a toy set in the service."""

from functools import partial

import pytest

from api.data_sets.annotations import NewAnnotation, annotate
from api.data_sets.class_masks import make_class_mask
from api.data_sets.definitions import create_data_set
from api.data_sets.new_file import NewFile
from api.data_sets.photographs import NewPhotograph, add_photograph
from api.data_sets.versions import create_version, take_snapshot
from datasets.layouts.toy import make_sample
from segdec.annotation_content import AnnotationContent
from segdec.images import encode_png
from tests.api.data_sets.filled_data_set import NOW
from tests.api.training.training_service import JOBS
from tests.training.worker.conftest import IDENTITY
from training.worker.job_run import JobRun
from training.worker.trainer_process import fit_command

pytest.importorskip("tensorflow")
pytestmark = pytest.mark.slow

SIDE = 32


async def fill(store):
    """Makes a data set of 24 toy parts with a version; returns its id."""
    number = await store.write(create_data_set, "Toys", ["defect"], "Ada", NOW)
    for index in range(24):
        sample = make_sample(index, size=SIDE)
        file = NewFile(encode_png(sample.image), "png", SIDE, SIDE)
        added = await store.write(
            add_photograph, number, NewPhotograph(file, name=sample.name), "Ada", NOW, files=[file]
        )
        label, mask = "good", None
        if sample.label:
            label = "defect"
            mask = make_class_mask((sample.mask > 0).astype("uint8"), label, ["defect"])
        annotation = NewAnnotation(AnnotationContent(label=label), mask and mask.sha256, "drawn", "Ada", NOW)
        files = [] if mask is None else [mask]
        await store.write(annotate, number, added.id, annotation, None, None, files=files)
    snapshot = await store.read(take_snapshot, number)
    await store.write(create_version, number, snapshot, "", "Ada", NOW, files=[snapshot.manifest])
    return number


def test_fit_trains_a_version_of_a_data_set(service, tmp_path):
    data_set = service.run(partial(fill, service.features.data_sets))
    job_id = service.order(data_set, model="toys", minutes=0.05)
    with service.connect() as worker:
        job = worker.lease(IDENTITY)
        JobRun(
            worker,
            job,
            tmp_path / "worker",
            None,
            lambda: False,
            lambda job: [*fit_command(job), "--encoder-weights", "none"],
        ).run()
    shown = service.show(job_id)
    events = service.get(f"{JOBS}/{job_id}/events").json()["events"]
    assert shown["state"] == "done", (shown["reason"], events[-5:])
    assert (shown["outcome"]["classes"], shown["version"]) == (["good", "defect"], "1")
    assert shown["outcome"]["rating"]["level"]
    assert shown["has_panel"]
    records = [event["content"] for event in events if event["kind"] == "metrics"]
    assert {record["kind"] for record in records} == {"train", "val"}
    printed = [line for event in events if event["kind"] == "output" for line in event["content"]]
    assert any(line.startswith("found       24 photographs") for line in printed)
    assert "<html" in service.get(f"{JOBS}/{job_id}/report").text
