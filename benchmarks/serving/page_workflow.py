"""From unlabelled photographs to an inspection, through the pages alone: minutes, clicks, keys and quality.

    python -m benchmarks.serving.page_workflow DATA --folder FOLDER --write docs/studio.md

DATA is a data set with masks. The command starts the service and a training worker on this machine, and a
simulated person in Chromium: creates a data set, adds photographs, labels each one (a key for a good one,
clicks into a defect as in `benchmarks.clicks`), trains, opens the report, uses the model and inspects a
photograph. Then all photographs of groups that the person never had are inspected through the API.
"""

import argparse
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np

from benchmarks.clicks import Bools
from benchmarks.harness import describe_machine, markdown_table, wrap_lines
from benchmarks.serving.page_user import GOOD_IOU, MAX_CLICKS, PageUser, opened_page
from benchmarks.serving.studio_programs import running_studio
from benchmarks.suite.results import measure_scores
from benchmarks.suite.table import add_write_option, replace_marked, split_marked
from datasets.detection import detect_layout
from datasets.loading import load_dataset
from datasets.reading import read, read_files
from datasets.sample import DataSetItem
from segdec.client import Client
from segdec.errors import ConfigError, ServiceError
from segdec.runtime.cli import clean_exit, parse_seed

MARKER = "<!-- page workflow -->"
HEADING = ("step", "where", "minutes", "clicks", "keys", "result")
NAME, CLASS = "Parts", "defect"
MODEL = NAME.lower()
"""The name that the page Train proposes."""
UNLIKE = "unlike_training"
"""Error code of a photograph that the model rejects because it looks unlike the training."""
MIN_DEFECTIVE = 3
"""Defective photographs that a training needs."""


@dataclass(frozen=True)
class Selection:
    """The photographs of the person, and those of other groups."""

    given: Sequence[DataSetItem]
    held_out: Sequence[DataSetItem]


@dataclass(frozen=True)
class Inspected:
    """Label and score of a photograph that the person never had; None if the model rejects it as unlike."""

    is_defective: bool
    label: str | None
    score: float | None


@dataclass
class Step:
    """One row of the table; `clicks` and `keys` are None for what is done without a page."""

    name: str
    where: str
    seconds: float = 0.0
    clicks: int | None = None
    keys: int | None = None
    result: str = ""

    def cells(self) -> list[str]:
        """Returns the cells of the row."""
        counts = ["–" if value is None else str(value) for value in (self.clicks, self.keys)]
        return [self.name, self.where, f"{self.seconds / 60:.1f}", *counts, self.result]


# === Photographs ===


def select_photographs(items: Sequence[DataSetItem], count: int, seed: int) -> Selection:
    """Draws groups until they have `count` photographs; the others are held out.

    The rest of the last group is not used, as photographs of the same part look alike.

    Raises:
        ConfigError: If one of both has too few good or defective photographs.
    """
    groups: dict[str, list[DataSetItem]] = {}
    for item in sorted(items, key=lambda one: one.name):
        groups.setdefault(item.group or item.name, []).append(item)
    names = sorted(groups)
    random.Random(seed).shuffle(names)
    given: list[DataSetItem] = []
    while names and len(given) < count:
        given += groups[names.pop(0)]
    selection = Selection(given[:count], [item for name in names for item in groups[name]])
    for kind, chosen, least in (
        ("given", selection.given, MIN_DEFECTIVE),
        ("held-out", selection.held_out, 1),
    ):
        defective = sum(item.label > 0 for item in chosen)
        if min(defective, len(chosen) - defective) < least:
            raise ConfigError(
                f"Of {len(chosen)} {kind} photographs {defective} are defective. Expected at least {least} "
                "good and defective ones: choose other --photographs or another --seed."
            )
    return selection


def page_name(item: DataSetItem) -> str:
    """Returns the name of a photograph on the pages: that of its file without the suffix."""
    return item.name.replace("/", "_")


def page_file(item: DataSetItem) -> tuple[str, bytes]:
    """Returns the name and the content of the file that the person chooses."""
    return f"{page_name(item)}{Path(str(item.image_file)).suffix}", read_files(item).photograph


def truth_finder(items: Sequence[DataSetItem]) -> Callable[[str], Bools | None]:
    """Returns a function that finds the true mask of a name; None for a good photograph.

    Raises:
        ConfigError: If a defective photograph has no mask.
    """
    by_name = {page_name(item): item for item in items}
    missing = [item.name for item in items if item.label > 0 and item.mask_file is None]
    if missing:
        raise ConfigError(f"{missing[0]!r} is defective and has no mask. Expected a data set with masks.")

    def find(name: str) -> Bools | None:
        item = by_name[name]
        return None if item.label == 0 else np.asarray(read(item).mask) > 0

    return find


# === The steps ===


class Workflow:
    """The steps of a person, with time, clicks and keys of each."""

    def __init__(self, user: PageUser) -> None:
        self.user = user
        self.steps: list[Step] = []

    @contextmanager
    def step(self, name: str, where: str, *, by_page: bool = True) -> Iterator[Step]:
        """Measures a step; its result is added in the block."""
        step = Step(name, where)
        started, clicks, keys = time.monotonic(), self.user.clicks, self.user.keys
        yield step
        step.seconds = time.monotonic() - started
        if by_page:
            step.clicks, step.keys = self.user.clicks - clicks, self.user.keys - keys
        self.steps.append(step)
        print(*step.cells(), sep=" | ", file=sys.stderr, flush=True)


def run_steps(workflow: Workflow, url: str, selection: Selection, options: argparse.Namespace) -> None:
    """Takes all steps from photographs to inspections."""
    user, find_truth = workflow.user, truth_finder(selection.given)
    with workflow.step("create a data set", "`/datasets`"):
        user.create_data_set(url, NAME, CLASS)
    with workflow.step("add photographs", "`/datasets`") as step:
        user.add_photographs([page_file(item) for item in selection.given])
        step.result = f"{len(selection.given)} photographs"
    with workflow.step("label", "`/label`") as step:
        labelled = user.label(find_truth)
        step.result = (
            f"{labelled.good} good, {len(labelled.ious)} defective, mean IoU {mean(labelled.ious):.2f}"
        )
    with workflow.step("train", "`/train`") as step:
        step.result = user.train(options.minutes, options.encoder)
    with workflow.step("open the report", "`/train`"):
        user.open_report()
    with workflow.step("use the model", "`/train`"):
        user.use_model()
    with workflow.step("inspect a photograph", "`/`") as step:
        first = selection.held_out[0]
        verdict = user.inspect(page_file(first))
        step.result = f"{verdict}; it is {'defective' if first.label else 'good'}"
    with workflow.step("inspect the others", "API", by_page=False) as step:
        step.result = describe_inspections(inspect(url, selection.held_out))


def inspect(url: str, items: Sequence[DataSetItem]) -> list[Inspected]:
    """Inspects photographs through the API with the model of the person."""
    found = []
    with Client(url) as client:
        for item in items:
            label, score = None, None
            try:
                decision = client.inspect(read_files(item).photograph, model=MODEL).decision
                label, score = decision.label, decision.score
            except ServiceError as error:
                if error.code != UNLIKE:
                    raise
            found.append(Inspected(item.label > 0, label, score))
    return found


def describe_inspections(inspected: Sequence[Inspected]) -> str:
    """Returns AP, AUROC and the errors as text; a part for review is neither missed nor passed.

    Rejected photographs are counted; the other figures are without them.
    """
    scored = [(one.is_defective, one.score) for one in inspected if one.score is not None]
    answered = [one for one in inspected if one.score is not None]
    defective = [one for one in answered if one.is_defective]
    good = [one for one in answered if not one.is_defective]
    precision, auroc = measure_scores([label for label, _ in scored], [score for _, score in scored])
    missed = sum(one.label == "good" for one in defective)
    alarms = sum(one.label != "good" for one in good)
    rejected = [one.is_defective for one in inspected if one.score is None]
    return (
        f"{len(inspected)} photographs, of which {len(rejected)} ({sum(rejected)} defective) are rejected as "
        f"unlike the training; of the others AP {precision:.3f}, AUROC {auroc:.3f}; missed {missed} of "
        f"{len(defective)} defective, not passed {alarms} of {len(good)} good"
    )


# === The table ===


def format_table(steps: Sequence[Step]) -> str:
    """Returns the table with a row for all steps on pages."""
    on_pages = [step for step in steps if step.clicks is not None]
    total = Step(
        "**all steps on pages**",
        "",
        sum(step.seconds for step in on_pages),
        sum(step.clicks or 0 for step in on_pages),
        sum(step.keys or 0 for step in on_pages),
    )
    position = len(on_pages)
    rows = [step.cells() for step in (*steps[:position], total, *steps[position:])]
    return markdown_table(HEADING, rows)


def _describe(options: argparse.Namespace, loads: Sequence[float]) -> str:
    machine = describe_machine()
    encoder = options.encoder or "chosen by the training"
    text = (
        f"{options.photographs} photographs of {options.data.resolve().name}, seed {options.seed}; time "
        f"limit of the training {options.minutes:g} minutes, encoder {encoder}; {machine['processor']}, "
        f"{machine['cores']} cores, load average {loads[0]:.1f} before and {loads[1]:.1f} after, "
        f"{machine['date']}. Minutes are those of the machine: the simulated person needs no time to look "
        f"or to decide. A mask is saved at an IoU of {GOOD_IOU} or after {MAX_CLICKS} clicks; IoU: of the "
        "saved masks with the published ones. A file dialog counts as a click. The last row is done through "
        "the API, on photographs of other parts than those of the data set."
    )
    return wrap_lines(text)


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.serving.page_workflow", description=(__doc__ or "").split("\n")[0]
    )
    add = parser.add_argument
    add("data", type=Path, metavar="DATA", help="a data set with masks")
    add(
        "--folder",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="new folder for all files of the programs",
    )
    add("--photographs", type=int, default=60, metavar="N", help="of the person (default: %(default)s)")
    add("--minutes", type=float, default=5.0, metavar="N", help="of the training (default: %(default)s)")
    add("--encoder", metavar="NAME", help="filled in on the page Train (default: chosen by the training)")
    add("--encoder-weights", type=Path, metavar="FILE", help="default: those that the training finds")
    add("--seed", type=parse_seed, default=0, metavar="N", help="draws the photographs")
    add_write_option(parser, MARKER)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs all steps, prints the table and writes it."""
    options = parse_options(arguments)
    with clean_exit(group="train"):
        if options.write is not None:
            split_marked(options.write, MARKER)
        items = load_dataset(detect_layout(options.data), options.data).items
        selection = select_photographs(items, options.photographs, options.seed)
        load = os.getloadavg()[0]
        with opened_page() as page, running_studio(options.folder, options.encoder_weights) as url:
            workflow = Workflow(PageUser(page))
            run_steps(workflow, url, selection, options)
        text = f"{format_table(workflow.steps)}\n\n{_describe(options, (load, os.getloadavg()[0]))}"
        print(text)
        if options.write is not None:
            replace_marked(options.write, text, MARKER)


if __name__ == "__main__":
    main()
