"""Helps to write inspection plans: `segdec plan check`, `segdec plan scale` and `segdec plan schema`."""

import argparse
import json
import re
import sys
from pathlib import Path

from segdec.artifact import open_artifact
from segdec.command_line.service_plans import add_service_commands
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

    add_service_commands(below)

    schema = below.add_parser("schema", help="print the JSON schema of a plan")
    schema.set_defaults(run=run_schema)


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
