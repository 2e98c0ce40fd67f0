"""Names and texts that try to become elements of the pages, in all that the service stores, on all pages."""

import hashlib
import json
from datetime import UTC, datetime
from urllib.parse import urlencode

import httpx
import pytest
from playwright.sync_api import ViewportSize, expect

from api.accounts.sessions import start_session
from api.accounts.users import add_user
from api.app import create_app
from api.database.database import open_database, write_transaction
from api.record.queries import add_audit_entry
from api.settings import Settings
from segdec import __version__
from segdec.artifact import ModelRating, OperatingPoint, OperatingPoints, PartShare
from segdec.images import encode_png
from segdec.training_schemas import WorkerIdentity
from tests.api.live_server import served
from tests.api.models.stub_models import StubModels
from tests.browser.accessibility import check_accessibility
from tests.browser.conftest import SIZES, PagePredictor, part_image, serving
from tests.browser.test_models import manifest_of
from training.worker.service_connection import ServiceConnection

ATTACK = "'\"><img src=x onerror=attacked=1><svg onload=attacked=1><script>attacked=1"
LINK = "javascript:attacked=1//"
RECEIVER, SETTING = f"receiver{ATTACK}", f"setting{ATTACK}"
VERSION = "1<img src=x onerror=attacked=1>"
WORKER_KEY = "of-a-worker"
PAGES = {
    "": None,
    "line": ATTACK,
    "review": ATTACK,
    "parts": ATTACK,
    "parts/1": ATTACK,
    "parts/2": LINK,
    "trends": ATTACK,
    "datasets": ATTACK,
    "datasets?id=1": ATTACK,
    "label?data_set=1&photograph=1": ATTACK,
    "train": ATTACK,
    "train?job=1": ATTACK,
    "models": ATTACK,
    "settings": (ATTACK, RECEIVER),
    "changes": (ATTACK, RECEIVER, SETTING),
}
"""Pages, each with texts that it must show."""
DIALOGS = {
    "parts": "#add-to-data-set",
    "review": "#show-statistics",
    "label?data_set=1&photograph=1": "#show-keys",
    "settings": "#user-rows button:has-text('Passwort')",
    "changes": "#account button",
}
"""Pages, each with a button that opens a dialog."""
NARROW: ViewportSize = {"width": 320, "height": 640}
"""Where WCAG requires that a page does not scroll sideways."""
ELEMENTS = """() => [...document.querySelectorAll("*")].filter((part) =>
    part.getAttribute("src") === "x" || part.hasAttribute("onerror") || part.hasAttribute("onload")
    || /^javascript:/i.test((part.getAttribute("href") ?? "").trim())
    || (part.localName === "script" && part.text.includes("attacked"))
).map((part) => part.outerHTML.slice(0, 200))"""
"""Elements that only an attack can have made."""


class HostilePredictor(PagePredictor):
    """The class of a defect has a hostile name."""

    def __init__(self):
        super().__init__()
        self.config = self.config.model_copy(update={"classes": ("good", ATTACK, LINK)})

    def interpret(self, *args, **words):
        found = super().interpret(*args, **words)
        label = ATTACK if found.label == "scratch" else found.label
        classes = dict(zip(self.config.classes, found.probabilities.values(), strict=True))
        return found.__class__(**{**found.__dict__, "label": label, "probabilities": classes})


def send(http, method, path, **words):
    answer = http.request(method, path, **words)
    assert answer.is_success, (path, answer.text)
    return answer.json() if answer.content else None


def inspect(http):
    """Inspects parts with hostile names, and reviews one."""
    for brightness, name in ((210, ATTACK), (211, LINK)):
        metadata = json.dumps({name: name, "lot": name})
        query = urlencode({"part_id": name, "station": name, "metadata": metadata})
        headers, image = {"Content-Type": "image/png"}, encode_png(part_image(brightness))
        send(http, "POST", f"v1/inspect?{query}", content=image, headers=headers)
    review = {"label": "good", "reviewer": ATTACK, "reason": ATTACK}
    send(http, "PUT", "v1/records/2/review", json=review, headers={"If-Match": '"0"'})


def label(http):
    """Makes a data set with hostile names, its photographs and a version."""
    send(http, "POST", "v1/data-sets", json={"name": ATTACK, "classes": [ATTACK, LINK]})
    path, headers = "v1/data-sets/1/photographs", {"Content-Type": "image/png"}
    for number, name in enumerate((ATTACK, LINK)):
        image = encode_png(part_image(90 + number))
        query = urlencode({"name": name, "group": name})
        sent = send(http, "POST", f"{path}?{query}", content=image, headers=headers)["photograph"]
        annotation = {"label": name, "based_on": None}
        send(http, "PUT", f"{path}/{sent['id']}/annotation", json=annotation)
    for number in range(3):  # a training needs good ones
        image = encode_png(part_image(100 + number))
        sent = send(http, "POST", path, content=image, headers=headers)["photograph"]
        send(http, "PUT", f"{path}/{sent['id']}/annotation", json={"label": "good", "based_on": None})
    send(http, "POST", "v1/data-sets/1/versions", json={"note": ATTACK})


def train(http, address):
    """Lets a worker with a hostile name report hostile texts."""
    for _ in range(2):
        send(http, "POST", "v1/training/jobs", json={"data_set": 1, "data_set_version": 1, "model": "m"})
    with ServiceConnection(address, WORKER_KEY) as worker:
        identity = WorkerIdentity(name=ATTACK, version=__version__, machine={ATTACK: ATTACK, "gpus": ATTACK})
        job = worker.lease(identity)
        events = [{"kind": "output", "content": [ATTACK]}, {"kind": "metrics", "content": {ATTACK: ATTACK}}]
        progress = {"phase": ATTACK, "stage": ATTACK, ATTACK: ATTACK}
        worker.heartbeat(job, is_training=True, progress=progress, events=events)
        worker.end(job, "failed", ATTACK)
        worker.lease(identity)


def add_hostile_user(service):
    """Adds an administrator with a hostile name, and changes by them; returns the token of a session."""
    engine, now = open_database(f"sqlite:///{service.folder}/record.db"), datetime.now(UTC)
    with write_transaction(engine) as connection:
        changed = {"name": SETTING, "value": ATTACK}
        add_audit_entry(connection, ATTACK, "change a setting", before=changed, after=changed)
        add_audit_entry(connection, ATTACK, "drop events", after={"sink": RECEIVER, "count": 2})
        add_audit_entry(connection, ATTACK, ATTACK, before={ATTACK: ATTACK}, after={ATTACK: ATTACK})
        add_user(connection, ATTACK, "administrator", password="hash", who=ATTACK, now=now)
        return start_session(connection, ATTACK, is_screen=False, now=now).text


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service in which every name and text is hostile; `token` is that of a session."""
    folder = tmp_path_factory.mktemp("service")
    keys = folder / "train.keys"
    keys.write_text(f"gpu:{hashlib.sha256(WORKER_KEY.encode()).hexdigest()}")
    settings = {"record_good_share": 1, "local_role": "administrator", "train_keys": keys}
    settings["outbox_jsonl"] = folder / RECEIVER
    with serving(folder, HostilePredictor(), **settings) as service:
        with httpx.Client(base_url=service.address, timeout=30) as http:
            inspect(http)
            label(http)
            train(http, service.address)
        service.token = add_hostile_user(service)
        yield service


@pytest.mark.parametrize("path", PAGES)
def test_stored_names_stay_text_on_every_page_and_filled_pages_meet_wcag(visit, service, path):
    user = visit(service.address, viewport=SIZES["large"], locale="de")
    user.page.context.add_cookies(
        [{"name": "segdec_session", "value": service.token, "url": service.address}]
    )
    page = user.open(path)
    expect(page.locator("#account")).to_contain_text(ATTACK)
    texts = PAGES[path] or ()
    for text in (texts,) if isinstance(texts, str) else texts:
        expect(page.locator("main")).to_contain_text(text)
    check_no_attack(page)
    check_accessibility(page)
    if path in DIALOGS:
        page.locator(DIALOGS[path]).first.click()
        expect(page.locator("dialog[open]")).to_be_visible()
        check_accessibility(page)
        page.keyboard.press("Escape")
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(NARROW)
    page.wait_for_function("document.documentElement.scrollWidth <= innerWidth")
    check_accessibility(page)


def check_no_attack(page):
    page.wait_for_load_state("networkidle")
    assert page.evaluate(ELEMENTS) == []
    assert page.evaluate("typeof attacked") == "undefined"


@pytest.mark.parametrize("path", ["", "models", "docs"])
def test_texts_of_served_models_stay_text(visit, tmp_path, monkeypatch, path):
    models = StubModels(tmp_path / "models", monkeypatch)
    stub = models.put(VERSION, ATTACK)
    share = PartShare(count=1, parts=2, low=0.1, high=0.9)
    point = OperatingPoint(goal="chosen", threshold=0.5, rejected=share, missed=share, note=ATTACK)
    manifest = manifest_of(
        stub.config,
        rating=ModelRating(level="weak", reason=ATTACK, advice=(ATTACK,)),
        operating_points=OperatingPoints(measured_on=ATTACK, points=(point,)),
        warnings=(ATTACK,),
    )
    stub.config = manifest.model_copy(update={"name": ATTACK, "version": VERSION})
    settings = {"models": models.folder, "batch_sizes": (1,), "local_role": "administrator"}
    app = create_app(Settings(record_folder=tmp_path / "record", record="required", **settings))
    with served(app) as (host, port):
        page = visit(f"http://{host}:{port}/").open(path)
        if path == "models":
            expect(page.locator("main")).to_contain_text([ATTACK])
            expect(page.locator(".rating").first).to_contain_text(ATTACK)
        check_no_attack(page)
