"""Takes the screenshots of the documentation: of pages after simulated inspections of a toy set, of a report.

    python -m datasets toy data/metal --surface metal --size 256 --count 200
    python -m training fit data/metal --minutes 5 --name metal
    python -m examples.screenshots models/metal data/metal docs --report runs/metal/report.html

It inspects test photographs, ten good ones for each defect, as if one arrived every 40 minutes for four
weeks, and reviews a sample of them with the ground truth; then as if one arrived every two minutes for a
day. It requires Chromium.
"""

import argparse
import asyncio
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Self
from unittest import mock

import httpx
import uvicorn
from playwright.sync_api import Browser, Page

from api.app import create_app
from api.settings import Settings
from datasets.loading import load_dataset
from datasets.sample import DataSetItem
from examples.headless_browser import running_chromium
from segdec.client import Client
from segdec.runtime.cli import clean_exit, import_tensorflow
from segdec.runtime.files import write_bytes_atomic

STATIONS = ("line3-top", "line3-side")
PART = "A17-"
GOOD_FOR_EACH_DEFECT = 10
EARLIER, RECENT = 995, 727
"""Numbers of inspections; the first and the last of the recent ones are defects."""
EARLIER_PAUSE, RECENT_PAUSE = timedelta(minutes=40), timedelta(minutes=2)
SIZES = dict.fromkeys(("review", "part", "trends", "plan", "report"), (1440, 900)) | {"line": (1920, 1080)}
READY = {
    "line": "#defects img",
    "review": "main[data-picture=shown]",
    "part": "#changes li",
    "trends": "#errors canvas",
    "plan": "#new-zone",
}
"""Pages, each with an element that appears when it is complete."""
JPEG_QUALITY = 70


class Past(datetime):
    """A clock that advances by a pause with each inspection and ends at the current time."""

    left = EARLIER + RECENT

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        """Returns the time of the next inspection."""
        cls.left -= 1
        earlier = max(cls.left - RECENT, 0)
        moment = datetime.now(tz) - earlier * EARLIER_PAUSE - (cls.left - earlier) * RECENT_PAUSE
        return cls.fromtimestamp(moment.timestamp(), tz)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the inspections and takes the screenshots."""
    parser = argparse.ArgumentParser(description="Takes screenshots of the pages of the record.")
    parser.add_argument("model", type=Path, help="an exported model")
    parser.add_argument("data", type=Path, help="the toy set of its training")
    parser.add_argument("out", type=Path, help="output folder")
    parser.add_argument("--report", type=Path, help="report.html of a run")
    options = parser.parse_args(arguments)
    import_tensorflow()
    with clean_exit(), running_chromium() as browser, tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            model=options.model,
            record="required",
            record_folder=Path(folder),
            record_zone="Europe/Berlin",
            record_good_share=0.2,
            record_near=1.0,
            local_role="engineer",
        )
        photographs = arriving_photographs(options.data)
        with serve(settings) as url:
            with mock.patch("api.record.inspection_rows.datetime", Past):
                inspect(url, photographs[:EARLIER])
                reviewed = review_all(url, photographs)
                queue_defects_only(url)
                inspect(url, photographs[EARLIER:], first=EARLIER)
            pages = {name: f"{url}/{name}" for name in READY} | {"part": f"{url}/parts/{reviewed}"}
            if options.report is not None:
                pages["report"] = options.report.resolve().as_uri()
            take_screenshots(browser, pages, options.out)


def arriving_photographs(data: Path) -> list[DataSetItem]:
    """Returns the photographs in order of arrival."""
    items = load_dataset("toy", data).of_split("test")
    good = [item for item in items if item.label == 0]
    defects = [item for item in items if item.label > 0]
    arriving = []
    for number in range(EARLIER + RECENT):
        rest = number % (GOOD_FOR_EACH_DEFECT + 1)
        of = defects if rest == GOOD_FOR_EACH_DEFECT // 2 else good
        arriving.append(of[number % len(of)])
    return arriving


@contextmanager
def serve(settings: Settings) -> Iterator[str]:
    """Serves on a free port; yields the URL."""
    app = create_app(settings)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))

    async def run() -> None:
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        await app.state.service.start()
        started.set()
        await serving

    started = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    started.wait()
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def inspect(url: str, photographs: Sequence[DataSetItem], first: int = 0) -> None:
    """Inspects the photographs one after another, as parts with the numbers from `first` on."""
    with Client(url) as client:
        for number, item in enumerate(photographs, first):
            station, part = STATIONS[number % len(STATIONS)], f"{PART}{number:06d}"
            client.inspect(item.image_file.read_bytes(), station=station, part_id=part)


def review_all(url: str, photographs: Sequence[DataSetItem]) -> int:
    """Reviews all queued parts with the ground truth; returns the record of a defect, or the first record."""
    found, asked = 1, {"session": "screenshots", "count": 5}
    with httpx.Client(base_url=url, timeout=60) as http:
        while tasks := http.post("/v1/review/next", json=asked).json()["tasks"]:
            for record in (task["record"] for task in tasks):
                is_good = photographs[int(record["part_id"].removeprefix(PART))].label == 0
                labels = [*record["answer"]["decision"]["probabilities"]]
                sent = {"label": labels[0 if is_good else 1], "reviewer": "Ada", "session": "screenshots"}
                headers = {"If-Match": f'"{record["revision"]}"'}
                answer = http.put(f"/v1/records/{record['record_id']}/review", json=sent, headers=headers)
                answer.raise_for_status()
                found = found if is_good else record["record_id"]
    return found


def queue_defects_only(url: str) -> None:
    """Changes the setting so that no part predicted good is queued for review."""
    httpx.put(f"{url}/v1/settings/record_good_share", json={"value": 0}).raise_for_status()


def take_screenshots(browser: Browser, pages: Mapping[str, str], out: Path) -> None:
    """Writes a screenshot of each page, by name and URL, as JPEG."""
    for name, url in pages.items():
        width, height = SIZES[name]
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
        page.add_init_script("localStorage.setItem('segdec.reviewer', 'Ada')")
        page.goto(url)
        page.wait_for_selector(READY.get(name, "body"))
        page.wait_for_load_state("networkidle")
        if name == "plan":
            make_plan(page)
        jpeg = page.screenshot(type="jpeg", quality=JPEG_QUALITY)
        write_bytes_atomic(out / f"{name}.jpg", jpeg)


def make_plan(page: Page) -> None:
    """Draws two zones on the photograph, writes two rules, and simulates them."""
    page.locator("#help").evaluate("help => help.open = false")
    _draw_circle(page, "part", 0.34)
    for _ in range(2):
        page.locator("#zone-new-rule").click()
    page.locator("#zone-rule-0-limit").fill("15")
    page.locator("#zone-rule-1-condition").select_option("more_than")
    page.keyboard.press("Escape")
    _draw_circle(page, "hole", 0.1)
    page.locator("#zone-ignored").check()
    page.locator("#zone-0").click()
    page.locator("#zone-cuts summary").click()
    page.locator("#zone-cut-0").check()
    page.locator("#simulate-button").click()
    page.locator("#simulate-button", has_text="Simulate").wait_for()
    page.locator("#show-defects").check()
    page.locator("#zones-title").scroll_into_view_if_needed()


def _draw_circle(page: Page, name: str, radius: float) -> None:
    """Draws a zone around the centre of the photograph; `radius` is a share of its width."""
    box = page.locator("#picture").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.485
    page.keyboard.press("c")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + radius * box["width"], y, steps=4)
    page.mouse.up()
    page.locator("[aria-expanded=true]", has_text="zone ").wait_for()
    page.locator("#zone-name").fill(name)
    page.keyboard.press("Enter")


if __name__ == "__main__":
    main()
