"""Arguments of commands that say how masks and annotations are read."""

import argparse
from collections.abc import Callable


def add_reading_arguments(add: Callable[..., argparse.Action]) -> None:
    """Adds the arguments to a parser, whose `add_argument` is given."""
    threshold = "mask pixels above N are defective; masks with grey levels require it"
    add("--mask-threshold", type=int, choices=range(255), metavar="N", help=threshold)
    inverted = "mask files are white where the photograph is good"
    add("--invert-masks", action=argparse.BooleanOptionalAction, help=inverted)
    rotation = "annotations were drawn on photographs without their EXIF rotation"
    add("--annotations-before-rotation", action=argparse.BooleanOptionalAction, help=rotation)
    annotator = "which of several annotations of one photograph counts: any, all, latest, or an annotator"
    add("--annotator", metavar="NAME", help=annotator)
    good = "label or folder of good photographs, for names that do not show it; repeatable"
    defect = "label that is a class of defects although it may mean good; repeatable"
    for name, meaning in (("good", good), ("defect", defect)):
        words = {"action": "append", "default": argparse.SUPPRESS, "metavar": "NAME"}
        add(f"--{name}", dest=f"{name}_labels", help=meaning, **words)
    strict = "shapes that cannot be used, and files with several pictures, are problems of their photographs"
    add("--strict", action="store_true", help=strict)
