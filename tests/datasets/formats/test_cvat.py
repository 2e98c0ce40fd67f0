import pytest

from datasets.layouts.folder import index
from tests.datasets.layouts.contents import block, check_dropped, check_problems, described, marked

HEAD = """<?xml version="1.0" encoding="utf-8"?>
<annotations>
  <version>1.1</version>
  <meta>
    <task><name>parts</name><labels><label><name>dent</name></label><label><name>unused</name></label></labels></task>
    <dumped>2024-05-01 10:00:00.000000+00:00</dumped>
  </meta>
"""
FIRST_LINE = HEAD.count("\n") + 1


@pytest.fixture
def export(tmp_path, write_picture):
    """Writes `annotations.xml` with one line for each image, and their photographs of 20×12 pixels."""

    def write(*images, head=HEAD, end="</annotations>\n"):
        for name, _ in images:
            write_picture(tmp_path / "images" / name)
        lines = [
            f'  <image id="{number}" name="{name}" width="20" height="12">{"".join(shapes)}</image>\n'
            for number, (name, shapes) in enumerate(images)
        ]
        (tmp_path / "annotations.xml").write_text("".join([head, *lines, end]), encoding="utf-8")

    return write


def shape(tag, label="dent", inner="", **attributes):
    written = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return f'<{tag} label="{label}" source="manual" occluded="0" z_order="0"{written}>{inner}</{tag}>'


def box(label="dent", **attributes):
    return shape("box", label, **{"xtl": 2.0, "ytl": 1.0, "xbr": 5.0, "ybr": 3.0, **attributes})


@pytest.mark.parametrize(
    ("drawn", "pixels", "supervision"),
    [
        (shape("polygon", points="2.0,1.0;5.0,1.0;5.0,3.0;2.0,3.0"), block((1, 2), (2, 3, 4)), "mask"),
        (box(), block((1, 2), (2, 3, 4)), "box"),
        # about its centre (4, 3): 4 wide and 2 high become x 3…5, y 1…5
        (box(xtl=2, ytl=2, xbr=6, ybr=4, rotation="90.0"), block((1, 2, 3, 4), (3, 4)), "box"),
        # a row of background 2 and defect 1, then defect 1, background 1 and defect 1
        (shape("mask", rle="2, 2, 1, 1", left=4, top=3, width=3, height=2), [(3, 6), (4, 4), (4, 6)], "mask"),
        (shape("mask", rle="0, 2", left=18, top=11, width=2, height=1), [(11, 18), (11, 19)], "mask"),
        (shape("ellipse", cx=4, cy=4, rx=1.5, ry=0.6), [(3, 3), (3, 4), (4, 3), (4, 4)], "mask"),
        (shape("ellipse", cx=4, cy=4, rx=3, ry=0.6, rotation=90), block((2, 3, 4, 5), (3, 4)), "mask"),
    ],
)
def test_shapes_by_hand(export, tmp_path, drawn, pixels, supervision):
    export(("a.png", [drawn]))
    dataset = index(tmp_path)
    assert (dataset.problems, dataset.classes) == ((), ("good", "dent"))
    assert marked(dataset.items[0]) == pixels
    assert dataset.items[0].supervision == supervision


def test_tree_of_an_export(export, tmp_path, write_picture):
    attribute = '<attribute name="depth">deep</attribute>'
    scratch = shape("polygon", "scratch", inner=attribute, points="0,0;4,0;4,4;0,4")
    export(
        ("a.png", [box(), scratch]),
        ("line 2/b.jpg", []),
        ("c.png", [shape("tag", "stain")]),
        ("d.png", [shape("tag", "Good")]),
        ("e.png", [box("ok"), shape("tag", "dent"), shape("tag", "dent")]),
        ("f.png", [shape("tag", "unknown"), box()]),
        ("g &amp; h.png", [box("Ä")]),
    )
    write_picture(tmp_path / "images/not_in_the_task.png")
    write_picture(tmp_path / "images/g & h.png")
    dataset = index(tmp_path)
    assert dataset.problems == ()
    assert dataset.classes == ("good", "dent", "scratch", "stain", "Ä")
    assert described(dataset) == [
        ("images/a", "scratch", "box", True),
        ("images/c", "stain", "label", False),
        ("images/d", "good", "mask", False),
        ("images/e", "dent", "label", False),
        ("images/f", "dent", "box", True),
        ("images/g & h", "Ä", "box", True),
        ("images/line 2/b", "good", "mask", False),
    ]
    assert str(dataset.items[0].mask_file) == f"{tmp_path / 'annotations.xml'}, line {FIRST_LINE}"
    assert {item.split for item in dataset.items} <= {"train", "val", "test"}


@pytest.mark.parametrize("attributes", ['name="train\\a.png"', 'name="a.png" subset="train"'])
def test_photograph_is_in_the_folder_of_its_name_or_subset(tmp_path, export, write_picture, attributes):
    export(end=f'<image id="1" {attributes} width="20" height="12"/></annotations>')
    write_picture(tmp_path / "images/train/a.png")
    (tmp_path / "splits.txt").write_text("val images/train/a\n")
    assert [(item.name, item.split) for item in index(tmp_path).items] == [("images/train/a", "val")]


def test_all_problems_are_reported_at_once(export, tmp_path):
    far = shape("polygon", points="30,1;35,1;35,3")
    mask = {"left": 0, "top": 0, "width": 2, "height": 2}
    no_label = "<box label=' ' xtl='1' ytl='1' xbr='2' ybr='2'/>"
    broken = {
        "line": ([shape("polygon", points="0,0;3,3"), far], "a polygon of 2 different points"),
        "text": ([shape("polygon", points="0,0;1;3,3")], "do not have the form x,y;x,y"),
        "word": ([box(xtl="left")], "'left' is not a number"),
        "lacks": (["<box label='dent' xtl='1'/>"], "the box has no attribute 'ytl'"),
        "label": ([no_label], "the label is empty"),
        "kind": ([shape("cuboid")], "the shape <cuboid> is unknown"),
        "runs": ([shape("mask", rle="1, 2", **mask)], "have 3 pixels, its box of 2×2 has 4"),
        "letters": ([shape("mask", rle="1, -1, 4", **mask)], "not a list of whole numbers"),
        "edge": ([shape("mask", rle="0, 4", **{**mask, "left": 19})], "is not inside the picture"),
        "large": ([shape("mask", rle="1", **{**mask, "width": 10**12})], "is not inside the picture"),
        "half": ([shape("mask", rle="0, 4", **{**mask, "left": 0.5})], "not in whole pixels"),
        "nan": ([box(rotation="nan")], "is out of range"),
        "both": ([box(), shape("tag", "good")], "has the labels good and dent"),
        "tags": ([shape("tag", "dent"), shape("tag", "pore")], "has the labels dent and pore"),
    }
    images = {f"{name}.png": shapes for name, (shapes, _) in broken.items()} | {"fine.png": [box()]}
    others = ['name="size.png" width="20" height="0"', 'name="gone.png"', 'name="../secret.png"', ""]
    end = "".join(f'<image id="5" {image}/>\n' for image in others)
    export(*images.items(), ("size.png", []), end=f"{end}</annotations>")
    dataset = index(tmp_path)
    assert [item.name for item in dataset.items] == ["images/fine"]
    lines = {name: f"annotations.xml, line {FIRST_LINE + number}" for number, name in enumerate(broken)}
    expected = [(lines[name], f"images/{name}", words) for name, (_, words) in broken.items()]
    expected.insert(1, (lines["line"], "images/line", "outside the picture of 20×12"))
    contradictions = [expected.pop(), expected.pop()][::-1]
    expected += [
        ("", "images/size", ") is invalid"),
        ("", "", "'gone.png' is missing"),
        ("", "", "'secret.png' is missing"),
        ("", "", "no attribute 'name'"),
        (f", line {FIRST_LINE + len(images) + 1}", "images/size", "has 2 annotations"),
    ]
    check_problems(dataset, [*expected, *contradictions])


BOMB = """<?xml version="1.0"?>
<!DOCTYPE annotations [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;">]>
<annotations><image id="0" name="&c;" width="20" height="12"/></annotations>
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{HEAD}  <image", "line 8: invalid XML"),
        (BOMB, "line 2: the file has a document type"),
        (
            f'<?xml version="1.0"?>\n<!DOCTYPE a SYSTEM "secret.dtd">\n{HEAD[39:]}</annotations>',
            "line 2: the file",
        ),
        (f"{HEAD}<track id='0' label='dent'/></annotations>", "CVAT for video"),
        ("<annotations>" + "<a>" * 10**5, "invalid XML"),
    ],
    ids=["cut off", "bomb", "outside file", "video", "deep"],
)
def test_broken_xml_is_one_problem(export, tmp_path, text, reason):
    export(("a.png", []))
    (tmp_path / "annotations.xml").write_text(text)
    dataset = index(tmp_path)
    assert dataset.items == ()
    (problem,) = dataset.problems
    assert reason.lower() in problem.text.lower()


def test_shape_beside_others_that_cannot_be_used_is_dropped(export, tmp_path):
    export(("a.png", [box(), shape("points", points="1,1"), shape("skeleton")]))
    dataset = index(tmp_path)
    assert described(dataset) == [("images/a", "dent", "box", True)]
    expected = [("", "images/a", f"the shape <{kind}> is unknown") for kind in ("points", "skeleton")]
    check_dropped(dataset, expected)
