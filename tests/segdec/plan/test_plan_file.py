import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from segdec.errors import ConfigError
from segdec.images import write_png
from segdec.plan.inspection_plan import Plan
from segdec.plan.plan_file import MAX_FILE_BYTES, parse_plan, read_plan
from segdec.plan.sentences import plan_text
from tests.segdec.plan.plans import make_plan, rectangle

EXAMPLE = Path(__file__).parents[3] / "examples/plan.toml"

HEAD = 'name = "housing"\n[photograph]\nwidth = 100\nheight = 60\n'
ZONE = "[zones.body]\nrectangle = { corner = [0, 0], width = 50, height = 60 }\n"


def parsed(text):
    return parse_plan(text.encode(), "plan.toml")


def test_the_example_is_a_plan_and_fits_its_schema():
    plan = read_plan(EXAMPLE)
    schema = Plan.model_json_schema()
    jsonschema.validate(json.loads(plan.model_dump_json(exclude_none=True)), schema)


def test_plan_as_text():
    text = plan_text(read_plan(EXAMPLE))
    assert text.splitlines() == [
        "capsule: photographs of 1000 × 1000 px, 20 × 20 mm at 0.02 mm per px",
        "seam: 1.44 % of the photograph",
        "seam: crack: reject and stop the line",
        "seam: scratch longer than 2 mm: reject",
        "seam: scratch within all limits: accept",
        "seam: any other defect: reject",
        "body: 16.8 % of the photograph",
        "body: pore longer than 0.5 mm: reject",
        "body: more than 3 × pore, each from 0.1 mm: reject",
        "body: scratch longer than 4 mm: for review",
        "body: total area of any defect larger than 1.5 mm²: reject",
        "body: pore within all limits: accept",
        "body: scratch within all limits: accept",
        "body: any other defect: reject",
        "border: ignored, 20 % of the photograph",
        "border: a defect that is completely inside and touches no other zone: accept",
        "outside all zones: any defect: for review",
        "defective by its score, but no mask score reaches the threshold: reject",
    ]


def test_the_digest_depends_on_the_content_alone():
    plan, other = parsed(HEAD + ZONE), parsed("# comment\n" + HEAD + ZONE)
    assert plan.sha256 == other.sha256
    assert parsed(HEAD + ZONE + 'otherwise = "review"\n').sha256 != plan.sha256


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = ", "not valid TOML"),
        (HEAD, "zones: Field required"),
        (HEAD + "[zones]\n", "zones: Dictionary should have at least 1 item"),
        (HEAD + "[zones.body]\n", "0 shapes; expected one of polygon"),
        (HEAD + ZONE + "circle = { center = [9, 9], radius = 5 }\n", "2 shapes; expected one"),
        (HEAD + ZONE.replace("50", "101"), r"reaches from \(0, 0\) to \(101, 60\); expected it inside"),
        (HEAD + ZONE.replace("width = 50", "width = 0"), "greater than 0"),
        (HEAD + ZONE + "ignored = true\nrules = [{ then = 'stop' }]\n", "an ignored zone with rules"),
        (HEAD + ZONE + "ignored = true\notherwise = 'reject'\n", "an ignored zone with rules"),
        (HEAD + ZONE + "rules = [{ longer_than = '2 mm', then = 'reject' }]\n", "mm_per_px is missing"),
        (HEAD + ZONE + "rules = [{ longer_than = '2,5 px', then = 'reject' }]\n", "in quotes: '2.5 mm'"),
        (HEAD + ZONE + "rules = [{ longer_than = '2px', then = 'reject' }]\n", "in quotes: '2.5 mm'"),
        (HEAD + ZONE + "rules = [{ longer_than = '0 px', then = 'reject' }]\n", "a number above 0"),
        (HEAD + ZONE + "rules = [{ longer_than = 2, then = 'reject' }]\n", "in quotes: '2.5 mm'"),
        (HEAD + ZONE + "rules = [{ larger_than = '2 px', then = 'reject' }]\n", "in quotes: '2.5 mm²'"),
        (HEAD + ZONE + "rules = [{ longer_than = '2 px', then = 'rejct' }]\n", "'reject' or 'stop'"),
        (HEAD + ZONE + "rules = [{ longer_than = '2 px' }]\n", "rules.0.then: Field required"),
        (
            HEAD + ZONE + "rules = [{ longr_than = '2 px', then = 'reject' }]\n",
            "zones.body.rules.0.longr_than: unknown key. Did you mean 'zones.body.rules.0.longer_than'?",
        ),
        (
            HEAD + ZONE + "rules = [{ longer_than = '2 px', wider_than = '1 px', then = 'stop' }]\n",
            "longer_than and wider_than in one rule",
        ),
        (HEAD + ZONE + "rules = [{ more_than = 2, then = 'stop' }]\n", "more_than without counted_from"),
        (
            HEAD + ZONE + "rules = [{ more_than = 2, counted_from = '1 px', then = 'reject' }]\n",
            "zones.body: rules.0 limits more_than for defects, but already one of them leads to 'rej",
        ),
        (HEAD.replace("100", "0") + ZONE, "photograph.width: Input should be greater than or equal to 1"),
        (HEAD.replace("100", "65536").replace("60", "65536") + ZONE, "65536 × 65536 px; expected at most"),
        (HEAD + "mm_per_px = 0\n" + ZONE, "greater than or equal to 0.000001"),
        (HEAD + "mm_per_px = inf\n" + ZONE, "less than or equal to 1000|finite"),
        (
            HEAD + "mm_per_px = 1\nknown_distance = { points = [[0, 0], [50, 0]], mm = 5 }\n" + ZONE,
            "expected one",
        ),
        (HEAD + "known_distance = { points = [[0, 0], [5, 0]], mm = 5 }\n" + ZONE, "5.0 px apart"),
        (
            HEAD + "[part]\nrules = [{ longer_than = '2 px', then = 'stop' }]\n" + ZONE,
            "is about single defects",
        ),
        (HEAD + "[part]\nrules = [{ total_larger_than = '2 %', then = 'stop' }]\n" + ZONE, "share of a zone"),
        (
            HEAD + ZONE + "rules = [{ longer_than = '2 px', counted_from = '1 px', then = 'stop' }]\n",
            "expected it only",
        ),
        (HEAD + ZONE + "rules = [{ longer_than = '2 px', then = 'accept' }]\n", "accepts above a limit"),
        (
            HEAD + ZONE + "rules = [{ longer_than = '4 px', then = 'review' }, "
            "{ longer_than = '2 px', then = 'stop' }]\n",
            "zones.body: rules.0 never decides: above '2 px' another rule already leads to 'stop'",
        ),
        (HEAD + ZONE + "rules = [{ longer_than = '0.5 px', then = 'stop' }]\n", "0.5 px; expected 1 to 117"),
        (HEAD + ZONE + "rules = [{ longer_than = '200 px', then = 'stop' }]\n", "200 px; expected 1 to 117"),
        (HEAD + ZONE + "rules = [{ larger_than = '7000 px²', then = 'stop' }]\n", "px²; expected 1 to 6000"),
        (HEAD + ZONE + "rules = [{ total_larger_than = '101 %', then = 'stop' }]\n", "at most 100 %"),
        (HEAD + "known_distance = { points = [[0, 0], [101, 0]], mm = 5 }\n" + ZONE, "expected it in"),
        (
            HEAD + "[part]\nrules = [{ closer_than = '2 px', then = 'accept' }]\n" + ZONE,
            "accepts above a limit",
        ),
        (
            HEAD + ZONE + "rules = [{ more_than = 0x" + "f" * 9000 + ", then = 'stop' }]\n",
            "valid integer|10000",
        ),
        (
            HEAD + ZONE + "without = ['b']\n[zones.b]\nwithout = ['body']\n"
            "circle = { center = [9, 9], radius = 5 }\n",
            "is cut out of",
        ),
        (HEAD + ZONE + "without = ['nothing']\n", "names 'nothing'; expected another zone"),
        (HEAD + ZONE + "without = ['body']\n", "names 'body'; expected another zone"),
        (HEAD + ZONE + "ignored = 'true'\n", "valid boolean"),
        (HEAD + "x = " + "1" * 5000 + "\n" + ZONE, "not valid TOML"),
        (HEAD + "a" + ".a" * 3000 + " = 1\n" + ZONE, "unknown key"),
        (HEAD + '"\\u001b[31m" = 1\n' + ZONE, r"photograph\.\\x1b\[31m: unknown key"),
        (HEAD + "[otherwise]\nunexplained = 'accept'\n" + ZONE, "'review', 'reject' or 'stop'"),
    ],
)
def test_plans_that_are_rejected(text, message):
    with pytest.raises(ConfigError, match=message):
        parsed(text)


def test_a_zone_drawn_as_a_picture(tmp_path):
    drawn = np.zeros((60, 100), np.uint8)
    drawn[10:20, 30:50] = 255
    write_png(tmp_path / "body.png", drawn)
    text = HEAD + "[zones.body]\nmask = 'body.png'\n"
    (tmp_path / "plan.toml").write_text(text)
    plan = read_plan(tmp_path / "plan.toml")
    assert np.array_equal(plan.draw_zone("body"), drawn > 0)
    assert Plan.model_validate_json(plan.model_dump_json()).sha256 == plan.sha256
    write_png(tmp_path / "body.png", drawn[:50])
    with pytest.raises(
        ConfigError, match="the mask of the zone 'body' has 100 × 50 px; expected 100 × 60 px"
    ):
        read_plan(tmp_path / "plan.toml")
    (tmp_path / "body.png").write_text("no picture")
    with pytest.raises(ConfigError, match=r"The mask of the zone 'body' cannot be read: .*body"):
        read_plan(tmp_path / "plan.toml")
    with pytest.raises(ConfigError, match=r"zones\.body\.mask: not a mask"):
        parsed(text)


def test_scale_from_a_known_distance():
    plan = parsed(HEAD + "known_distance = { points = [[10, 10], [40, 50]], mm = 5 }\n" + ZONE)
    assert plan.photograph.scale == pytest.approx(0.1)


def test_more_than_100_zones_are_rejected():
    zones = {f"zone {number}": rectangle(0, 0, 9, 9) for number in range(101)}
    with pytest.raises(ValueError, match="at most 100 items"):
        make_plan(zones)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ConfigError, match=r"missing.toml cannot be read: No such file"):
        read_plan(tmp_path / "missing.toml")
    (tmp_path / "large.toml").write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(ConfigError, match="more than 1048576 bytes"):
        read_plan(tmp_path / "large.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not valid TOML"):
        read_plan(tmp_path / "binary.toml")
