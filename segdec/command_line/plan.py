"""Checks inspection plans: `segdec plan check` and `segdec plan schema`."""

import argparse
import json
from pathlib import Path

from segdec.artifact import open_artifact
from segdec.errors import ConfigError
from segdec.images import read_image, write_png
from segdec.plan.judgement import PlanJudge
from segdec.plan.plan_file import Plan, read_plan
from segdec.plan.sentences import plan_text, size_error_text
from segdec.plan.zone_overlay import draw_zones
from segdec.runtime.cli import Commands


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
    print(plan_text(plan))
    if model is not None:
        print(size_error_text(model.size_errors))
    if options.photograph is not None:
        _draw_picture(plan, options.photograph, options.out)
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
        write_png(out, draw_zones(pixels, plan))
    except OSError as error:
        raise ConfigError(f"--out {out} cannot be written: {error.strerror}. Choose another file.") from error


def run_schema(_: argparse.Namespace) -> int:
    """Prints the JSON schema."""
    print(json.dumps(Plan.model_json_schema(), indent=2, ensure_ascii=False))
    return 0
