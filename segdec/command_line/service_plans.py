"""Inspection plans of a service: `segdec plan send`, `segdec plan simulate` and `segdec plan activate`."""

import argparse
import re
from collections import Counter
from pathlib import Path

from segdec.command_line.service_keys import KEY_VARIABLE, open_client
from segdec.config import GOOD
from segdec.plan.plan_file import read_plan
from segdec.runtime.cli import Commands
from segdec.schemas import SimulatedPart

DEFAULT_PARTS = 1000
NUMBER_PATTERN = "[1-9][0-9]{0,6}"


def add_service_commands(below: Commands) -> None:
    """Adds the commands to `segdec plan`."""
    send = below.add_parser("send", help="store a plan on a service")
    send.add_argument("plan", type=Path, metavar="FILE", help="the plan, TOML")
    _add_service(send)
    _add_reason(send)
    send.set_defaults(run=run_send)

    simulate = below.add_parser("simulate", help="show which recorded verdicts a plan would change")
    simulate.add_argument(
        "plan", metavar="PLAN", help="version of a stored plan, or a file, which is not stored"
    )
    _add_service(simulate)
    simulate.add_argument("--station", metavar="NAME", help="only parts of this station; default: all")
    simulate.add_argument(
        "--parts", type=parse_number, default=DEFAULT_PARTS, metavar="N", help="at least; default: 1000"
    )
    simulate.set_defaults(run=run_simulate)

    activate = below.add_parser("activate", help="let a stored plan decide on a service")
    activate.add_argument(
        "version", type=parse_version, metavar="VERSION", help="of the stored plan; none: no plan of its own"
    )
    _add_service(activate)
    _add_reason(activate)
    activate.add_argument(
        "--station", default="", metavar="NAME", help="only there; default: all without a plan of their own"
    )
    activate.set_defaults(run=run_activate)


def _add_service(command: argparse.ArgumentParser) -> None:
    command.add_argument("--url", required=True, help="the service, for example http://127.0.0.1:8000")
    command.add_argument("--model-name", required=True, metavar="NAME", help="model that the plan is for")
    command.add_argument(
        "--api-key-file", type=Path, metavar="FILE", help=f"file with the API key; default: ${KEY_VARIABLE}"
    )


def _add_reason(command: argparse.ArgumentParser) -> None:
    command.add_argument("--reason", required=True, metavar="TEXT", help="why, for the audit log")


def run_send(options: argparse.Namespace) -> int:
    """Stores a plan on a service."""
    plan = read_plan(options.plan)
    with open_client(options.url, options.api_key_file) as client:
        stored = client.store_plan(options.model_name, plan, options.reason)
    print(
        f"Plan '{stored.name}' is stored as version {stored.version} for {options.model_name}. Next: segdec "
        f"plan simulate {stored.version}, then segdec plan activate {stored.version}"
    )
    return 0


def run_activate(options: argparse.Namespace) -> int:
    """Activates a stored plan, or none."""
    with open_client(options.url, options.api_key_file) as client:
        answer = client.activate_plan(options.model_name, options.version, options.station, options.reason)
    plans = {plan.station: plan for model in answer.models for plan in model.plans}
    others = "all other stations" if set(plans) - {""} else "all stations"
    for station, plan in sorted(plans.items()):
        print(f"{station or others}: plan '{plan.name}', version {plan.version}")
    if "" not in plans:
        print(f"{others}: no plan, {options.model_name} decides")
    return 0


def parse_version(text: str) -> int | None:
    """Parses the version of a stored plan, or `none`, for `argparse`."""
    if text != "none" and not re.fullmatch(NUMBER_PATTERN, text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a version. Expected a number from 1, or none")
    return None if text == "none" else int(text)


def parse_number(text: str) -> int:
    """Parses a number from 1, for `argparse`."""
    if not re.fullmatch(NUMBER_PATTERN, text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return int(text)


def run_simulate(options: argparse.Namespace) -> int:
    """Prints which verdicts of recorded parts a plan would change."""
    is_stored = re.fullmatch(NUMBER_PATTERN, options.plan) is not None
    plan = int(options.plan) if is_stored else read_plan(Path(options.plan))
    judged = good = deleted = 0
    parts: list[SimulatedPart] = []
    before: int | None = None
    with open_client(options.url, options.api_key_file) as client:
        while True:
            page = client.simulate_plan(options.model_name, plan, station=options.station, before=before)
            judged, good, deleted = judged + page.judged, good + page.good, deleted + page.deleted
            parts += page.parts
            before = page.next_before
            if before is None or judged >= options.parts:
                break
    changed = [part for part in parts if part.label != part.new_label]
    for part in changed:
        name = f"record {part.record_id}" + (f", part {part.part_id}" if part.part_id else "")
        reviewed = f" (reviewed: {part.reviewed_label})" if part.reviewed_label else ""
        print(f"{name}: {part.label} → {part.new_label}{reviewed}: {part.reason}")
    subject = f"Version {plan}" if is_stored else f"Plan {options.plan}"
    print(f"{subject} changes {len(changed):,} of the last {judged:,} verdicts.")
    pairs = Counter((part.label, part.new_label) for part in parts) + Counter({(GOOD, GOOD): good})
    for (old, new), count in sorted(pairs.items()):
        print(f"{old} → {new}: {count:,}")
    if deleted:
        print(f"{deleted:,} parts that were not good are unknown: their photographs were deleted.")
    return 0
