"""The page of trainings in a real browser, with the real service; the worker trains nothing."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
import pytest
from playwright.sync_api import expect

from segdec import __version__
from segdec.images import encode_png
from segdec.training_schemas import LeasedJob, WorkerIdentity
from tests.browser.conftest import contrast, serving
from tests.browser.german_page import check_german
from training.worker.file_sets import upload_files
from training.worker.service_connection import ServiceConnection

KEY = "of-a-worker"
IDENTITY = WorkerIdentity(
    name="gpu-1", version=__version__, machine={"system": "Linux", "cpus": "16", "gpus": "2"}
)
MISSED = "On 80 test photographs it misses 6 of 40 defective ones and rejects 0 of 40 good ones."
ADVICE = "Add photographs of 'scratch', or check their labels."
RATING = {"level": "weak", "reason": MISSED, "advice": [ADVICE]}
METRICS = {"average_precision": 0.93, "false_negatives": 6, "defective": 40}
OUTCOME = {"rating": RATING, "metrics": METRICS}


@dataclass
class Studio:
    """A service with a data set, and its worker."""

    address: str
    worker: ServiceConnection

    def lease(self) -> LeasedJob:
        job = self.worker.lease(IDENTITY)
        assert job is not None
        return job

    def beat(self, job: LeasedJob, step: int, *events: dict) -> str:
        """Reports a step; returns what the worker must do."""
        progress = {"phase": "training", "stage": "joint", "step": step, "elapsed_s": 60}
        return self.worker.heartbeat(job, is_training=True, progress=progress, events=events).command


@pytest.fixture
def studio(tmp_path) -> Iterator[Studio]:
    keys = tmp_path / "train.keys"
    keys.write_text(f"gpu:{hashlib.sha256(KEY.encode()).hexdigest()}")
    with (
        serving(tmp_path, local_role="engineer", train_keys=keys) as service,
        httpx.Client(base_url=service.address) as http,
        ServiceConnection(service.address, KEY) as worker,
    ):
        created = http.post("v1/data-sets", json={"name": "Small brackets!", "classes": ["scratch", "dent"]})
        path = f"v1/data-sets/{created.json()['id']}/photographs"
        for value, label in enumerate(("good", "scratch", "dent", "good", "scratch", "good")):
            photograph = encode_png(np.full((40, 60), 90 + value, np.uint8))
            sent = http.post(path, content=photograph, headers={"Content-Type": "image/png"}).json()
            annotation = f"{path}/{sent['photograph']['id']}/annotation"
            assert http.put(annotation, json={"label": label, "based_on": None}).status_code == 200
        yield Studio(service.address, worker)


def record(kind: str, stage: int, step: int, **numbers: float) -> dict:
    content = {
        "kind": kind,
        "stage": ("segment", "joint")[stage],
        "stage_index": stage,
        "step": step,
        **numbers,
    }
    return {"kind": "metrics", "content": content}


def finish(worker: ServiceConnection, job: LeasedJob, folder: Path) -> None:
    """Uploads a result that misses 4 of 4 defects, and ends the job."""
    (folder / "model").mkdir(exist_ok=True)
    (folder / "model" / "manifest.json").write_text("{}")
    (folder / "report.html").write_text("<h1>Report</h1>")
    rows = [f"{number},{'good' if number % 2 else 'scratch'},good\n" for number in range(8)]
    (folder / "predictions.csv").write_text("name,true_label,predicted_label\n" + "".join(rows))
    paths = [folder / name for name in ("model/manifest.json", "report.html", "predictions.csv")]
    worker.send_result(job, upload_files(worker, job, folder, paths, lambda: None))
    worker.end(job, "done", "", OUTCOME)


def test_after_the_time_limit_the_page_says_that_the_model_is_evaluated(visit, studio):
    with httpx.Client(base_url=studio.address) as http:
        version = http.post("v1/data-sets/1/versions", json={"note": ""}).json()["number"]
        order = {"data_set": 1, "data_set_version": version, "model": "brackets", "minutes": 2}
        assert http.post("v1/training/jobs", json=order).status_code == 201
    job = studio.lease()
    progress = {"phase": "training", "stage": "joint", "step": 6, "elapsed_s": 130}
    studio.worker.heartbeat(job, is_training=True, progress=progress, events=())
    page = visit(studio.address).open("train?job=1")
    expect(page.locator("#job-facts")).to_contain_text("none: the model is evaluated")


def test_a_training_is_ordered_watched_and_ended(visit, studio, tmp_path):
    window = visit(studio.address)
    page = window.open("datasets?id=1")
    page.locator("#steps [aria-current=step]", has_text="Train a model").click()
    expect(page.locator("#no-worker")).to_contain_text("python -m training worker")
    expect(page.locator("#version-note")).to_have_text("6 labelled photographs: 3 good, 2 scratch, 1 dent")
    assert page.locator("input[name=model]").input_value() == "small_brackets"
    page.locator("input[name=minutes]").fill("2")
    page.locator("summary", has_text="More settings").click()
    page.locator("#class-boxes label", has_text="dent").click()
    page.locator("button", has_text="Start training").click()
    expect(page.locator("#job-state")).to_have_text("waits for a worker")
    job = studio.lease()
    assert (job.settings.minutes, job.settings.classes) == (2, ["scratch"])
    events = [record("train", 0, step, loss=1 / step) for step in (10, 20)]
    events += [
        record("val", 1, 5, average_precision=0.9, pixel_f1=0.5),
        {"kind": "output", "content": ["step 5"]},
    ]
    assert studio.beat(job, 5, *events) == "continue"
    expect(page.locator("#job-state")).to_have_text("runs · worker gpu-1")
    expect(page.locator("#job-facts")).to_contain_text("stage joint, step 5")
    expect(page.locator("#job-facts")).to_contain_text("1 min 0 s")
    expect(page.locator("#loss canvas")).to_be_visible()
    assert page.locator("#quality").evaluate("part => part.chart.data[0]") == [
        25
    ]  # after 20 steps of the first stage
    expect(page.locator("#output")).to_have_text("step 5")
    studio.worker.send_panel(job, encode_png(np.full((40, 60, 3), 90, np.uint8)))
    studio.beat(job, 6)
    expect(page.locator("#panel")).to_be_visible()
    window.screenshot("train-running", full_page=True)
    page.locator("button", has_text="End with the best weights so far").click()
    expect(page.locator("#job-state")).to_contain_text("is being ended")
    assert studio.beat(job, 7) == "stop"
    finish(studio.worker, job, tmp_path)
    expect(page.locator("#job-state")).to_have_text("done · worker gpu-1")
    expect(page.locator("#rating")).to_contain_text(MISSED)
    expect(page.locator("#rating")).to_contain_text(ADVICE)
    assert page.locator("#metrics").inner_text().split("\n") == [
        "Missed defects",
        "6 of 40 photographs",
        "AP",
        "0.930",
    ]
    assert contrast(page, "#rating strong") >= 4.5
    page.locator("#embedded summary").click()
    report = page.frame_locator("#embedded iframe")
    expect(report.locator("h1")).to_have_text("Report")
    assert report.locator("h1").evaluate("() => self.origin") == "null"  # it has no access to the service
    with page.context.expect_page() as opened:
        page.locator("#report").click()
    expect(opened.value.locator("h1")).to_have_text("Report")
    window.screenshot("train-done", full_page=True)
    window.open("datasets?id=1")
    expect(page.locator("#steps [aria-current=step]")).to_have_text("Use the model")
    window.screenshot("data-set-steps")
    window.open("train")
    expect(page.locator("#jobs li")).to_contain_text("small_brackets 1")
    expect(page.locator("#jobs em")).to_contain_text("weak · AP 0.930")
    expect(page.locator("#workers")).to_contain_text("GPUs: 2")


def test_a_training_is_described_in_german(visit, studio, tmp_path):
    window = visit(studio.address, locale="de-DE")
    page = window.open("train")
    expect(page.locator("#version-note")).to_have_text("6 annotierte Bilder: 3 gut, 2 scratch, 1 dent")
    expect(page.locator("input[name=model]")).to_have_attribute("title", re.compile("Ziffern"))
    page.locator("button", has_text="Training starten").click()
    expect(page.locator("#job-state")).to_have_text("wartet auf einen Trainingsrechner")
    studio.worker.end(studio.lease(), "crashed", "The training was killed by SIGKILL.")
    expect(page.locator("#job-reason")).to_have_text("Das Training wurde durch SIGKILL beendet.")
    job = studio.lease()
    studio.beat(job, 5)
    with page.expect_response("**/stop"):
        page.locator("button", has_text="Mit den bisher besten Gewichten beenden").click()
    assert studio.beat(job, 6) == "stop"
    finish(studio.worker, job, tmp_path)
    expect(page.locator("#rating p")).to_have_text(
        [
            "80 Bilder (Testbilder): 6 von 40 fehlerhaften übersehen und 0 von 40 guten abgelehnt.",
            "Bilder mit „scratch“ hinzufügen oder ihre Annotationen prüfen.",
        ]
    )
    expect(page.locator("#states li")).to_contain_text(
        [
            "Beauftragt von Unbekannt (127.0.0.1).",
            "Der Trainingsrechner gpu-1 hat den Auftrag.",
            "Das Training wurde durch SIGKILL beendet. Der Auftrag wartet auf einen Trainingsrechner",
            "Der Trainingsrechner gpu-1 hat den Auftrag.",
            "Unbekannt (127.0.0.1) beendet das Training mit den bisher besten Gewichten.",
            "Der Auftrag ist fertig.",
        ]
    )
    check_german(window, "train")


def test_two_trainings_are_compared(visit, studio, tmp_path):
    page = visit(studio.address).open("train")
    for _ in range(2):
        page.locator("button", has_text="Start training").click()
        expect(page.locator("#job-state")).to_have_text("waits for a worker")
        finish(studio.worker, studio.lease(), tmp_path)
        expect(page.locator("#job-state")).to_contain_text("done")
        page.goto(f"{studio.address}train")
    page.locator("#jobs a", has_text="small_brackets 1").click()
    page.locator("#other").select_option(label="small_brackets 2")
    expect(page.locator("#difference")).to_contain_text("The difference may be chance (p = 1.00).")
    expect(page.locator("#compared")).to_contain_text("4 of 4 (39.8 to 100.0 %)")


def test_what_a_hostile_worker_reports_is_text_and_does_not_stop_the_page(visit, studio):
    page = visit(studio.address).open("train")
    page.locator("button", has_text="Start training").click()
    expect(page.locator("#job-state")).to_have_text("waits for a worker")
    job, script = studio.lease(), "<img src=x onerror=document.title='attacked'>"
    steps = [10**17 + 16 * number for number in range(9)]
    records = [record("train", 0, step, loss=1e300 + 1e284 * step) for step in steps]
    records += [record("train", 0, step, loss=1e12 + step * 2**-12) for step in (1, 2, 3)]
    records += [record("train", 0, script, loss=script), record("val", 0, 0.5, average_precision=-1e308)]
    records += [{"kind": "metrics", "content": {script: script}}, {"kind": "output", "content": [script]}]
    studio.beat(job, 5, *records)
    expect(page.locator("#output")).to_have_text(script)
    assert page.locator("#loss").evaluate("part => part.chart.data[0]") == [1, 2, 3]
    studio.worker.end(job, "failed", script)
    expect(page.locator("#job-reason")).to_contain_text(script)
    assert (page.locator("main img[src=x]").count(), "attacked" in page.title()) == (0, False)


def test_a_failed_training_says_why_and_is_continued(visit, studio):
    page = visit(studio.address).open("train")
    page.locator("button", has_text="Start training").click()
    expect(page.locator("#job-state")).to_have_text("waits for a worker")
    studio.worker.end(studio.lease(), "failed", "The disk is full.")
    expect(page.locator("#job-reason")).to_contain_text("The disk is full.")
    page.locator("#job-buttons button", has_text="Continue").click()
    expect(page.locator("#job-state")).to_contain_text("waits for a worker")
    page.locator("#job-buttons button", has_text="Cancel").click()
    expect(page.locator("#job-state")).to_contain_text("cancelled")
    page.locator("#job-buttons button", has_text="Delete").click()
    page.locator("#confirm button", has_text="Cancel").click()
    expect(page.locator("#job-state")).to_contain_text("cancelled")
    page.locator("#job-buttons button", has_text="Delete").click()
    expect(page.locator("#confirm-text")).to_contain_text("the report of small_brackets 1 are deleted")
    page.locator("#confirm-yes").click()
    expect(page.locator("#no-job h2")).to_have_text("No training yet")


def test_only_very_long_lines_of_the_log_are_broken(visit, studio):
    with httpx.Client(base_url=studio.address) as http:
        version = http.post("v1/data-sets/1/versions", json={"note": ""}).json()["number"]
        order = {"data_set": 1, "data_set_version": version, "model": "brackets", "minutes": 2}
        assert http.post("v1/training/jobs", json=order).status_code == 201
    lines = ["found       6 photographs", "word " * 22 + "end", "", "word " * 60]
    studio.beat(studio.lease(), 5, {"kind": "output", "content": lines})
    for width, height in ((1024, 768), (390, 844)):
        page = visit(studio.address, viewport={"width": width, "height": height}).open("train?job=1")
        expect(page.locator("#output span")).to_have_count(4)
        short, whole, empty, long = page.locator("#output span").evaluate_all(
            "lines => lines.map(({ offsetHeight }) => offsetHeight)"
        )
        assert short == whole == empty > 0 and long > short
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.locator("#output").inner_text().splitlines()[:2] == lines[:2]


def test_the_page_fits_screens_and_phones(visit, studio):
    user = visit(studio.address, locale="de")
    expect(user.open("train").locator("#version-note")).not_to_be_empty()
    user.check_sizes("train")


def test_too_few_good_photographs_are_not_trained(visit, studio):
    with httpx.Client(base_url=studio.address) as http:
        assert http.post("v1/data-sets", json={"name": "New", "classes": []}).json()["id"] == 2
    user = visit(studio.address, locale="de")
    page = user.open("train?data_set=2")
    start = page.locator("#new [type=submit]")
    expect(page.locator("#version-note")).to_have_text(
        "Kein Bild ist annotiert. Ein Training braucht mindestens 3 gute Bilder."
    )
    expect(start).to_be_disabled()
    check_german(user, "too-few-good")
    assert page.locator("#label-more").get_attribute("href") == "label?data_set=2"
    page.locator("#new [name=data_set]").select_option("1")
    expect(start).to_be_enabled()
    expect(page.locator("#label-more")).to_be_hidden()


def test_a_training_that_runs_is_cancelled_after_a_question(visit, studio):
    page = visit(studio.address).open("train")
    page.locator("button", has_text="Start training").click()
    expect(page.locator("#job-facts a")).to_have_attribute("href", "datasets?id=1")
    job = studio.lease()
    studio.beat(job, 5)
    cancel = page.locator("#job-buttons button", has_text="Cancel")
    expect(page.locator("#job-state")).to_contain_text("gpu-1")
    cancel.click()
    page.locator("#confirm button", has_text="Cancel").click()
    assert studio.beat(job, 6) == "continue"
    cancel.click()
    expect(page.locator("#confirm-text")).to_contain_text("small_brackets 1 ends now")
    page.locator("#confirm-yes").click()
    expect(cancel).to_have_count(0)
    assert studio.beat(job, 7) == "cancel"


def test_a_model_that_cannot_be_used_is_offered_again(visit, studio, tmp_path):
    page = visit(studio.address).open("train")
    page.locator("button", has_text="Start training").click()
    expect(page.locator("#job-state")).to_have_text("waits for a worker")
    finish(studio.worker, studio.lease(), tmp_path)
    waiting = []
    page.route("**/use", lambda route: waiting.insert(0, route))
    use = page.locator("#job-buttons .primary")
    use.click()
    expect(use).to_have_text("Loading …")
    waiting[0].fulfill(status=503, json={"detail": "The disk is full."})
    expect(page.locator("#problem")).to_have_text("The disk is full.")
    expect(use).to_have_text("Use the model")
    expect(use).to_be_enabled()
