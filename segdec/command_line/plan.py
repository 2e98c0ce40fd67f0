"""Inspection plans on the command line: `segdec plan check`, `scale`, `schema`, `send` and `activate`."""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from segdec.artifact import open_artifact
from segdec.command_line.service_keys import KEY_VARIABLE, explain_key_errors, read_key
from segdec.errors import ConfigError
from segdec.images import read_image, write_png
from segdec.plan.board import MIN_CORNERS, Board, measure_plane
from segdec.plan.inspection_plan import Plan
from segdec.plan.judgement import PlanJudge, check_trained_size
from segdec.plan.perspective import Plane
from segdec.plan.plan_file import read_plan
from segdec.plan.sentences import plan_text, size_error_text
from segdec.plan.zone_overlay import ZoneOverlay
from segdec.runtime.cli import Commands

if TYPE_CHECKING:
    from segdec.client import Client

MIN_COVERED = 0.3
"""Share of the photograph that a board must cover, else there is a warning."""


def add_plan(commands: Commands) -> None:
    """Adds the commands to the command line."""
    plan = commands.add_parser("plan", help="check inspection plans, with zones and size limits")
    below = plan.add_subparsers(required=True, metavar="COMMAND")

    check = below.add_parser("check", help="check a plan and print its rules")
    check.add_argument("plan", type=Path, metavar="FILE", help="the plan, TOML")
    check.add_argument("--model", type=Path, metavar="FOLDER", help="artifact that the plan is for")
    check.add_argument(
        "--photograph", type=Path, metavar="IMAGE", help="with --out: photograph on which to draw the zones"
    )
    check.add_argument("--out", type=Path, metavar="PNG", help="picture of the zones to write")
    check.set_defaults(run=run_check)

    scale = below.add_parser("scale", help="measure scale, perspective and lens on the photograph of a board")
    scale.add_argument("photograph", type=Path, metavar="IMAGE", help="the board on the surface of the part")
    scale.add_argument(
        "--squares", type=parse_squares, required=True, metavar="CxR", help="squares in a row and column: 9x6"
    )
    scale.add_argument("--square-mm", type=parse_length, required=True, metavar="MM", help="side of a square")
    scale.add_argument("--charuco", metavar="NAME", help="dictionary of a ChArUco board: DICT_4X4_50")
    scale.add_argument("--marker-mm", type=parse_length, metavar="MM", help="side of a ChArUco marker")
    scale.set_defaults(run=run_scale)

    send = below.add_parser("send", help="store a plan on a service")
    send.add_argument("plan", type=Path, metavar="FILE", help="the plan, TOML")
    _add_service(send)
    send.set_defaults(run=run_send)

    activate = below.add_parser("activate", help="let a stored plan decide on a service")
    activate.add_argument(
        "version", type=parse_version, metavar="VERSION", help="of the stored plan; none: the model decides"
    )
    _add_service(activate)
    activate.add_argument(
        "--station", default="", metavar="NAME", help="only there; default: all without a plan of their own"
    )
    activate.set_defaults(run=run_activate)

    schema = below.add_parser("schema", help="print the JSON schema of a plan")
    schema.set_defaults(run=run_schema)


def _add_service(command: argparse.ArgumentParser) -> None:
    command.add_argument("--url", required=True, help="the service, for example http://127.0.0.1:8000")
    command.add_argument("--model-name", required=True, metavar="NAME", help="model that the plan is for")
    command.add_argument("--reason", required=True, metavar="TEXT", help="why, for the audit log")
    command.add_argument(
        "--api-key-file", type=Path, metavar="FILE", help=f"file with the API key; default: ${KEY_VARIABLE}"
    )


def run_check(options: argparse.Namespace) -> int:
    """Checks a plan and prints what it says."""
    if (options.photograph is None) != (options.out is None):
        raise ConfigError("Only one of --photograph and --out was given. Expected both, or none.")
    plan = read_plan(options.plan)
    model = None if options.model is None else open_artifact(options.model).manifest
    if model is not None:
        PlanJudge(plan, model)
        check_trained_size(plan, model)
    if options.photograph is not None:
        _draw_picture(plan, options.photograph, options.out)
    print(plan_text(plan))
    if model is not None:
        print(f"The model finds: {', '.join(model.classes[1:])}.")
        print(size_error_text(plan, model.size_errors))
    return 0


def _draw_picture(plan: Plan, photograph: Path, out: Path) -> None:
    """Draws the zones on a photograph."""
    pixels = read_image(photograph).pixels
    height, width = pixels.shape[:2]
    if (height, width) != (plan.photograph.height, plan.photograph.width):
        raise ConfigError(
            f"{photograph} has {width} × {height} px. Expected {plan.photograph.width} × "
            f"{plan.photograph.height} px, as in the plan."
        )
    try:
        write_png(out, ZoneOverlay(plan).draw(pixels))
    except OSError as error:
        raise ConfigError(f"--out {out} cannot be written: {error.strerror}. Choose another file.") from error


def run_scale(options: argparse.Namespace) -> int:
    """Prints the section of a plan for the photographs of a camera."""
    if (options.charuco is None) != (options.marker_mm is None):
        raise ConfigError("Only one of --charuco and --marker-mm was given. Expected both, or none.")
    columns, rows = options.squares
    board = Board(columns, rows, options.square_mm, options.charuco, options.marker_mm or 0.0)
    pixels = read_image(options.photograph).pixels
    height, width = pixels.shape[:2]
    measured = measure_plane(*board.find_corners(pixels), width, height)
    Plane(measured.perspective, width, height)  # raises if the view is too oblique
    matrix = ", ".join(f"{number:.9g}" for number in measured.perspective.matrix)
    print(
        f"[photograph]\nwidth = {width}\nheight = {height}\n"
        f"perspective = {{ matrix = [{matrix}], radial = {measured.perspective.radial:.6g} }}\n"
        f"# error at the corners of the board: {measured.error_mm:.2g} mm"
    )
    if measured.covered < MIN_COVERED:
        print(
            f"warning: the board covers {100 * measured.covered:.0f} % of the photograph; outside, the scale "
            "is a guess. Use a larger board, or place it where the part is.",
            file=sys.stderr,
        )
    return 0


def run_send(options: argparse.Namespace) -> int:
    """Stores a plan on a service."""
    plan = read_plan(options.plan)
    with open_service(options) as client:
        stored = client.store_plan(options.model_name, plan, options.reason)
    print(
        f"Plan '{stored.name}' is stored as version {stored.version} for {options.model_name}. It decides "
        f"after: segdec plan activate {stored.version} --url {options.url} --model-name {options.model_name} "
        '--reason "…"'
    )
    return 0


def run_activate(options: argparse.Namespace) -> int:
    """Activates a stored plan, or none."""
    with open_service(options) as client:
        answer = client.activate_plan(options.model_name, options.version, options.station, options.reason)
    plans = {plan.station: plan for model in answer.models for plan in model.plans}
    others = "all other stations" if set(plans) - {""} else "all stations"
    for station, plan in sorted(plans.items()):
        print(f"{station or others}: plan '{plan.name}', version {plan.version}")
    if "" not in plans:
        print(f"{others}: no plan, {options.model_name} decides")
    return 0


@contextmanager
def open_service(options: argparse.Namespace) -> Iterator["Client"]:
    """Opens the client of the service that the options name."""
    from segdec.client import Client

    key = read_key(options.api_key_file)
    with (
        explain_key_errors(options.url, options.api_key_file, key),
        Client(options.url, api_key=key) as client,
    ):
        yield client


def parse_version(text: str) -> int | None:
    """Parses the version of a stored plan, or `none`, for `argparse`."""
    if text == "none":
        return None
    if not re.fullmatch("[1-9][0-9]{0,3}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a version. Expected a number from 1, or none")
    return int(text)


def parse_squares(text: str) -> tuple[int, int]:
    """Parses squares in a row and a column such as `9x6`, for `argparse`."""
    match = re.fullmatch("([0-9]{1,2})x([0-9]{1,2})", text)
    if match is None or (int(match[1]) - 1) * (int(match[2]) - 1) < MIN_CORNERS:
        raise argparse.ArgumentTypeError(
            f"{text!r} are not squares. Expected COLUMNSxROWS with {MIN_CORNERS} inner corners or more: 9x6"
        )
    return int(match[1]), int(match[2])


def parse_length(text: str) -> float:
    """Parses a length in mm above 0, for `argparse`."""
    if not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,6})?", text) or not float(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a length. Expected a number from 0 to 999, in mm")
    return float(text)


def run_schema(_: argparse.Namespace) -> int:
    """Prints the JSON schema."""
    print(json.dumps(Plan.model_json_schema(), indent=2, ensure_ascii=False))
    return 0
