"""Why a photograph was not inspected, and what is unexpected about it, in German."""

import ast
import inspect
import io
import re
from collections.abc import Iterator

import numpy as np
import pytest
from PIL import Image

from api.messages.language import find_language
from api.messages.sentences import translate_sentences
from segdec import photograph_reasons
from segdec.artifact import PhotographComparison, TrainingPhotographs, compare_photograph
from segdec.errors import ImageError
from segdec.images import BLANK_PALETTE, Photograph, decode_image
from segdec.imaging import header, integrity
from segdec.imaging.white_level import to_8_bits
from segdec.inference import preprocessing
from tests.api.messages.test_job_sentences import text_of
from tests.segdec.artifact.test_artifact import MANIFEST

ENGLISH_WORDS = re.compile(r"\b(the|of|than|was|is|has|or|in training|undefined)\b|[{}]")


def rejections() -> Iterator[str]:
    """Yields every reason as the error and as the warning of a photograph."""
    constants = [value for name, value in vars(photograph_reasons).items() if name.isupper()]
    reasons = [value for value in constants if isinstance(value, str) and " " in value]
    reasons.remove(photograph_reasons.THAN_TRAINING)
    for reason in (*reasons, *photograph_reasons.CAUSES.values()):
        with pytest.raises(ImageError) as raised:
            PhotographComparison(reason, refused=True).check()
        yield str(raised.value)
        yield from PhotographComparison(reason).check("warn")


def warnings() -> Iterator[str]:
    """Yields the warnings of files and of their sizes."""
    exif = Image.Exif()
    exif[0x0112] = 6  # rotated
    pages = [Image.new("RGBA", (8, 8), (200, 200, 200, alpha)) for alpha in (9, 100)]
    file = io.BytesIO()
    pages[0].save(file, "PNG", save_all=True, append_images=pages[1:], exif=exif)
    yield from decode_image(file.getvalue(), "a photograph").warnings
    yield BLANK_PALETTE
    yield from to_8_bits(np.full((8, 8, 1), 30, np.uint16), 4095, "a photograph")[1]
    yield from to_8_bits(np.full((8, 8, 1), 5000, np.uint16), 4095, "a photograph")[1]
    for depths in ([8], [1, 8]):
        trained = TrainingPhotographs.of([(100, 200), (110, 200)], depths)
        model = MANIFEST.model_copy(update={"training_photographs": trained})
        photograph = Photograph(np.zeros((100, 150, 1), np.uint8), "tiff", 16)
        yield from compare_photograph(model, photograph, photograph.pixels).warnings


def test_what_is_said_about_a_photograph_is_in_german():
    english = [*rejections(), *warnings()]
    assert len(english) == 2 * 13 + 12
    shown = [translate_sentences(text, find_language("de")) for text in english]
    assert [text for text in shown if ENGLISH_WORDS.search(text)] == []
    assert all(text != translated for text, translated in zip(english, shown, strict=True))


# === Errors ===

MODULES = header, integrity, preprocessing
TEXTS = {"EXPECTED": header.EXPECTED, "values": "32 bits, or signed or float values,", "size": "5 × 5 = 25"}
"""Parts of sentences by their expressions; others are numbers or names, for which "5" stands."""


def errors() -> Iterator[str]:
    """Yields the texts of errors of the codes for which the catalogues have no complete text."""
    codes = find_language("de").catalogue.codes
    for module in MODULES:
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "ImageError":
                (code,) = (keyword.value for keyword in node.keywords)
                if isinstance(code, ast.Constant) and "{detail}" in codes.get(code.value, ""):
                    yield text_of(node.args[0], TEXTS)


def test_details_of_errors_are_in_german():
    found = list(errors())
    assert len(found) > 8
    shown = [translate_sentences(text, find_language("de")) for text in found]
    assert [text for text in shown if re.search(r"Expected|\b(is|has|as|the)\b", text)] == []
