"""The page of data sets in a real browser, with the real service."""

import io
import json
import re
import zipfile

import httpx
import pytest
from playwright.sync_api import expect

from datasets.layouts.toy import make_sample
from segdec.images import encode_png
from tests.browser.accessibility import check_accessibility
from tests.browser.conftest import SIZES, part_image, serving
from tests.browser.test_empty_pages import open_as
from tests.browser.test_log_in import add_people, log_in

SCRIPT = "<img src=x onerror=alert(1)>"


def toy_files(count):
    """Photographs in folders of their class, with masks: path → content."""
    files = {}
    for number in range(count):
        sample = make_sample(number, size=64, classes=4)
        files[f"parts/{sample.name}.png"] = encode_png(sample.image)
        if sample.label:
            files[f"parts/masks/{sample.name}.png"] = encode_png(sample.mask)
    return files


def archive(files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as written:
        for name, data in files.items():
            written.writestr(name, data)
    return content.getvalue()


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("service"), local_role="administrator") as service:
        yield service


@pytest.fixture
def create(service):
    """Creates a data set by a request; returns its id."""

    def create(name, classes=("scratch",)):
        with httpx.Client(base_url=service.address) as http:
            answer = http.post("v1/data-sets", json={"name": name, "classes": list(classes)})
            return answer.json()["id"]

    return create


def get(service, path):
    return httpx.get(f"{service.address}{path}").json()


def photographs(service, number):
    found = get(service, f"v1/data-sets/{number}/photographs")["photographs"]
    return {one["name"]: one["label"] for one in found}


def names(page):
    return page.locator("#pictures strong").all_inner_texts()


def test_a_browser_gets_the_reason_while_it_sends_a_rejected_archive(visit, service, create):
    page = visit(service.address).open("datasets")
    code = page.evaluate(
        """async (path) => {
            const body = new Blob([new Uint8Array(40e6)], { type: "text/plain" });
            return (await (await fetch(path, { method: "POST", body })).json()).code;
        }""",
        f"v1/data-sets/{create('rejected')}/archives",
    )
    assert code == "unsupported_content_type"


def test_a_data_set_is_created_and_filled_from_an_archive(visit, service):
    user = visit(service.address)
    page = user.open("datasets")
    page.locator("#new-data-set [name=name]").fill("Toy parts")
    page.locator("#new-data-set [name=classes]").fill("scratch, dent")
    page.get_by_role("button", name="Create data set").click()
    expect(page.locator("#name")).to_have_text("Toy parts")
    expect(page.locator("#summary")).to_have_text("No photographs.")
    expect(page.locator("#steps [aria-current=step]")).to_have_text("Add photographs")
    expect(page.locator("#steps")).not_to_contain_text("✓")
    files = {**toy_files(12), "parts/good/broken.png": b"no picture"}
    user.drop(("parts.zip", archive(files)))
    expect(page.locator("#imports")).to_contain_text("Done, 12 added, 12 labelled, 1 left out")
    expect(page.locator("#summary")).to_have_text("12 photographs shown")
    page.locator("#imports summary").click()
    expect(page.locator("#imports details")).to_contain_text("parts/good/broken.png is not an image")
    page.locator("#pictures .picture").first.scroll_into_view_if_needed()
    expect(page.locator("#pictures img")).not_to_have_count(0)
    labels = page.locator("#labels li").all_inner_texts()
    assert [re.sub(r"\s+", " ", text) for text in labels] == [
        *("Not labelled 0", "Good 6", "scratch 2", "dent 0", "spot 2", "stain 2")
    ]
    user.check_sizes("data-set")
    page.get_by_role("link", name="All data sets").click()
    expect(page.locator("#data-sets")).to_contain_text("Toy parts")
    user.check_sizes("data-sets")


def test_single_photographs_are_added_without_labels_and_failures_are_named(visit, service, create):
    number = create("Single")
    user = visit(service.address)
    page = user.open(f"datasets?id={number}")
    expect(page.locator("#summary")).to_have_text("No photographs.")
    good = encode_png(part_image(90))
    user.drop(
        ("a.png", good),
        ("b.png", encode_png(part_image(91))),
        ("c.png", b"none"),
        ("d.txt", b"text"),
        ("e.png", b""),
    )
    problems = page.locator("#upload-problems")
    expect(problems).to_contain_text("d.txt is not a photograph and was not sent.")
    expect(problems).to_contain_text("e.png is empty and was not sent.")
    expect(problems).to_contain_text("c.png: The file is not an image of a known type")
    expect(page.locator("#summary")).to_have_text("2 photographs shown")
    user.drop(("again.png", good), (f"{SCRIPT}.png", encode_png(part_image(92))))
    expect(problems).to_have_text("1 photograph was in the data set already.")
    check_accessibility(page)
    expect(page.locator("#summary")).to_have_text("3 photographs shown")
    assert photographs(service, number) == {"a": None, "b": None, SCRIPT: None}


def test_a_data_set_is_deleted_after_its_name_was_typed(visit, service, create):
    page = visit(service.address).open(f"datasets?id={create('Old parts')}")
    page.locator("summary", has_text="Delete the data set").click()
    page.locator("#deletion input").fill("Old part")
    page.locator("#deletion button").click()
    expect(page.locator("#problem")).to_contain_text("Expected that of the data set to be deleted")
    page.locator("#deletion input").fill("Old parts")
    page.locator("#deletion button").click()
    expect(page.locator("#list")).to_be_visible()
    expect(page.locator("#data-sets")).not_to_contain_text("Old parts")


def test_a_photograph_is_pasted(visit, service, create):
    number = create("Pasted")
    page = visit(service.address).open(f"datasets?id={number}")
    expect(page.locator("#summary")).to_have_text("No photographs.")
    page.evaluate(
        """bytes => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([Uint8Array.from(bytes)], "image.png", { type: "image/png" }));
            document.dispatchEvent(new ClipboardEvent("paste", { clipboardData: transfer }));
        }""",
        list(encode_png(part_image(80))),
    )
    expect(page.locator("#summary")).to_have_text("1 photograph shown")
    (name,) = photographs(service, number)
    assert name.startswith("Pasted ")


def test_folder_is_packed_and_its_labels_are_read(visit, service, create, tmp_path):
    number = create("Folder", ())
    for name, content in toy_files(8).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    page = visit(service.address).open(f"datasets?id={number}")
    expect(page.locator("#summary")).to_have_text("No photographs.")
    page.locator("#folder").set_input_files(tmp_path / "parts")
    expect(page.locator("#imports")).to_contain_text("Done, 8 added, 8 labelled")
    assert photographs(service, number)["good/00000"] == "good"
    page.locator("#with-labels").uncheck()
    page.locator("#folder").set_input_files(tmp_path / "parts")
    expect(page.locator("#upload-problems")).to_contain_text("8 photographs were in the data set already.")


def test_questions_about_labels_are_answered_without_a_second_upload(visit, service, create):
    number = create("Unclear")
    shape = {"label": "no burr", "shape_type": "rectangle", "points": [[5, 5], [20, 20]]}
    drawn = {"imagePath": "a.png", "imageHeight": 40, "imageWidth": 60, "shapes": [shape]}
    unclear = {"parts/images/a.png": encode_png(part_image(80)), "parts/images/a.json": json.dumps(drawn)}
    user = visit(service.address)
    page = user.open(f"datasets?id={number}")
    expect(page.locator("#summary")).to_have_text("No photographs.")
    user.drop(("parts.zip", archive({**toy_files(8), **unclear})))
    expect(page.locator("#imports")).to_contain_text("Done, 8 added, 8 labelled, 1 left out")
    form = page.locator("#imports form")
    form.get_by_role("group", name="no burr").get_by_label("Is a defect").check()
    check_accessibility(page)
    page.reload()
    form.get_by_role("group", name="no burr").get_by_label("Is a defect").check()
    form.get_by_role("button", name="Import again").click()
    expect(page.locator("#imports")).to_contain_text("Done, 1 added, 8 already there, 1 labelled")
    expect(form).to_have_count(0)
    expect(page.locator("#labels")).to_contain_text("no burr")
    assert photographs(service, number)["images/a"] == "no burr"


def test_failed_archive_says_why(visit, service, create):
    user = visit(service.address)
    page = user.open(f"datasets?id={create('Failed')}")
    expect(page.locator("#summary")).to_have_text("No photographs.")
    user.drop(("bad.zip", archive({"../a.png": b""})))
    expect(page.locator("#imports")).to_contain_text("outside of the archive's folder")
    expect(page.locator("#imports")).to_contain_text("Failed")


@pytest.fixture
def filled(service, create):
    """A data set with six photographs without labels."""
    number = create(f"Filled {len(get(service, 'v1/data-sets')['data_sets'])}", ("scratch", "dent"))
    with httpx.Client(base_url=service.address) as http:
        for seed in range(6):
            body = encode_png(part_image(100 + seed))
            path = f"v1/data-sets/{number}/photographs?name=line/{seed}"
            http.post(path, content=body, headers={"Content-Type": "image/png"}).raise_for_status()
    return number


def choose(page, *numbers):
    for number in numbers:
        page.locator("#pictures .picture").nth(number).click()


def test_several_photographs_get_a_label_and_are_removed(visit, service, filled):
    page = visit(service.address).open(f"datasets?id={filled}")
    expect(page.locator("#summary")).to_have_text("6 photographs shown")
    actions = page.locator("#actions")
    expect(actions.get_by_role("button", name="Good")).to_be_disabled()
    choose(page, 0, 1, 2)
    expect(page.locator("#selected")).to_have_text("3 selected")
    actions.get_by_role("button", name="scratch").click()
    expect(page.locator("#labels li").nth(2)).to_have_text("scratch3")
    choose(page, 3)
    actions.get_by_role("button", name="Left out").click()
    expect(page.locator("#labels li").last).to_have_text("Left out1")
    choose(page, 0)
    actions.get_by_role("button", name="No label").click()
    expect(page.locator("#labels li").first).to_have_text("Not labelled3")
    page.locator("#labels button").first.click()
    expect(page.locator("#summary")).to_have_text("3 photographs shown")
    assert names(page) == ["line/0", "line/4", "line/5"]
    page.locator("#select-all").check()
    actions.get_by_role("button", name="Good").click()
    expect(page.locator("#labels li").nth(1)).to_have_text("Good3")
    page.locator("#filter [name=label]").select_option("*")
    page.locator("#filter [name=search]").fill("line/5")
    page.keyboard.press("Enter")
    expect(page.locator("#summary")).to_have_text("1 photograph shown")
    choose(page, 0)
    actions.get_by_role("button", name="Remove from the data set").click()
    expect(page.locator("#pictures")).to_contain_text("removed")
    labels = {
        "line/0": "good",
        "line/1": "scratch",
        "line/2": "scratch",
        "line/3": "ignore",
        "line/4": "good",
    }
    assert photographs(service, filled) == labels


def test_a_search_begins_with_a_button_or_enter(visit, service, filled):
    page = visit(service.address, viewport=SIZES["phone"], has_touch=True).open(f"datasets?id={filled}")
    expect(page.locator("#summary")).to_have_text("6 photographs shown")
    page.get_by_role("searchbox", name="Search").fill("line/5")
    page.get_by_role("button", name="Search").tap()
    expect(page.locator("#summary")).to_have_text("1 photograph shown")
    page.get_by_role("searchbox", name="Search").fill("line/")
    page.keyboard.press("Enter")
    expect(page.locator("#summary")).to_have_text("6 photographs shown")


def test_the_list_of_data_sets_needs_no_scrolling_sideways_on_phones(visit, service, create):
    create("Brackets with a long name of line 3 and line 4", ("contamination", "spot of rust", "dent"))
    page = visit(service.address, locale="de").open("datasets")
    row = page.get_by_role("row").filter(has_text="Brackets with a long name").first
    for width in (390, 320):
        page.set_viewport_size({"width": width, "height": 800})
        expect(row.get_by_role("cell").last).to_be_visible()
        for part in (page.locator(".scroll"), row):
            assert part.evaluate("one => one.scrollWidth <= one.clientWidth")
    check_accessibility(page)


def test_change_by_another_person_is_said_and_not_overwritten(visit, service, filled):
    page = visit(service.address).open(f"datasets?id={filled}")
    expect(page.locator("#summary")).to_have_text("6 photographs shown")
    first = get(service, f"v1/data-sets/{filled}/photographs")["photographs"][0]
    path = f"{service.address}v1/data-sets/{filled}/photographs/{first['id']}/annotation"
    httpx.put(path, json={"label": "dent", "based_on": None}).raise_for_status()
    page.locator("#select-all").check()
    page.locator("#actions").get_by_role("button", name="Good").click()
    problem = "1 of 6 photographs not changed: The photograph 'line/0' has the annotation"
    expect(page.locator("#problem")).to_contain_text(problem)
    labels = photographs(service, filled)
    assert labels.pop("line/0") == "dent" and set(labels.values()) == {"good"}


def test_versions_are_made_compared_and_exported(visit, service, filled):
    page = visit(service.address).open(f"datasets?id={filled}")
    expect(page.locator("#summary")).to_have_text("6 photographs shown")
    choose(page, 0, 1)
    page.locator("#actions").get_by_role("button", name="Good").click()
    expect(page.locator("#labels li").nth(1)).to_have_text("Good2")
    page.locator("#new-version [name=note]").fill(f"first {SCRIPT}")
    page.get_by_role("button", name="Make version").click()
    expect(page.locator("#versions li")).to_have_count(1)
    expect(page.locator("#versions")).to_contain_text(f"first {SCRIPT}")
    choose(page, 1, 2)
    page.locator("#actions").get_by_role("button", name="dent").click()
    expect(page.locator("#labels li").nth(3)).to_have_text("dent2")
    page.get_by_role("button", name="Make version").click()
    expect(page.locator("#versions li")).to_have_count(2)
    page.get_by_role("button", name="Compare").click()
    comparison = page.locator("#comparison")
    expect(comparison).to_contain_text("1 photograph added, 0 removed, 1 with another label")
    expect(comparison).to_contain_text("line/1: Good → dent")
    expect(page.locator("#versions li").first).to_contain_text("Download as a ZIP file:")
    with page.expect_download() as downloading:
        page.locator("#versions li").first.get_by_role("button", name="Folder").click()
    with zipfile.ZipFile(downloading.value.path()) as exported:
        (manifest,) = (name for name in exported.namelist() if name.endswith("manifest.jsonl"))
        lines = [json.loads(line) for line in exported.read(manifest).splitlines()]
    assert [line["label"] for line in lines].count("dent") == 2


def test_findings_of_a_check_show_their_photographs(visit, service, create):
    number = create("Checked")
    parts = [make_sample(2 * seed, size=64).image for seed in range(11)]
    with httpx.Client(base_url=service.address) as http:
        for name, pixels in enumerate([*parts, parts[3].clip(0, 254) + 1]):
            path = f"v1/data-sets/{number}/photographs"
            sent = {"content": encode_png(pixels), "headers": {"Content-Type": "image/png"}}
            photograph = http.post(f"{path}?name={name}", **sent).json()["photograph"]["id"]
            body = {"label": "good", "based_on": None}
            http.put(f"{path}/{photograph}/annotation", json=body).raise_for_status()
    page = visit(service.address).open(f"datasets?id={number}")
    expect(page.locator("#summary")).to_have_text("12 photographs shown")
    page.get_by_role("button", name="Check photographs").click()
    expect(page.locator("#check-state")).to_contain_text("1 finding,")
    page.locator("#findings").get_by_role("button", name="Almost equal photographs").click()
    expect(page.locator("#summary")).to_have_text("2 photographs shown")
    assert sorted(names(page)) == ["11", "3"]
    page.reload()
    expect(page.locator("#findings li")).to_have_count(1)


def test_reviewer_sees_no_controls_of_engineers(visit, tmp_path):
    with serving(tmp_path) as service:
        add_people(service)
        page = visit(service.address).open("datasets")
        log_in(page)
        expect(page.locator("#list")).to_be_visible()
        expect(page.locator("#new-data-set")).to_be_hidden()


def test_reviewer_reads_who_can_take_the_steps_of_engineers(visit, service, create):
    number = create("Of others")
    page = open_as(visit, service.address, f"datasets?id={number}", "reviewer").page
    steps = page.locator("#steps li")
    expect(steps.first).to_contain_text("Somebody with the role engineer can do this: Add photographs.")
    expect(steps.first.locator("a")).to_be_hidden()
    expect(steps.nth(1).locator("a")).to_be_visible()
    expect(steps.nth(3).locator("a")).to_be_hidden()
    expect(steps.nth(3).locator("span", has_text="Train a model")).to_be_visible()
    for panel, step in (("proposals", "Propose labels"), ("findings", "Check photographs")):
        note = page.locator(f"#{panel}-panel").get_by_text(
            f"Somebody with the role engineer can do this: {step}."
        )
        expect(note).to_be_visible()


def test_results_of_a_search_are_added(visit, service, create):
    number = create("From parts")
    with httpx.Client(base_url=service.address) as http:
        for part in ("7", "8"):
            body = encode_png(part_image(200 + int(part)))
            http.post(f"v1/inspect?part_id={part}", content=body, headers={"Content-Type": "image/png"})
    page = visit(service.address).open("parts?part_id=7")
    expect(page.locator("#summary")).to_have_text("1 inspection")
    page.get_by_role("button", name="Add to a data set").click()
    page.locator("#data-set-choice").select_option(label="From parts")
    page.locator("#data-set-add").click()
    expect(page.locator("#data-set-state")).to_contain_text("1 photograph added")
    assert len(photographs(service, number)) == 1
