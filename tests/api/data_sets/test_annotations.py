"""Annotations: none is lost, none is overwritten unseen, masks agree with labels."""

import numpy as np
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from api.data_sets.annotations import find_mask, list_annotations
from api.data_sets.class_masks import make_class_mask, read_class_mask
from api.data_sets.photographs import PhotographFilters, list_photographs, remove_photograph
from api.database.database import write_transaction
from api.errors import RequestError
from segdec.annotation_content import AnnotationContent
from segdec.errors import ImageError
from segdec.images import decode_mask_values, encode_png
from tests.api.data_sets.filled_data_set import CLASSES, EVERY_FIELD, HEIGHT, NOW, WIDTH, mask_of
from tests.api.record.databases import both_databases


def code_of(refusal):
    return refusal.value.status, refusal.value.code


def latest(filled):
    return filled.read(list_photographs, PhotographFilters(), 0, 9, NOW).photographs[0]


@both_databases
def test_every_annotation_stays(filled):
    number = filled.add(1).id
    mask = mask_of((1, 2, 3), (2, 10, 20), (255, 20, 30))
    first = filled.annotate(number, "scratch", mask)
    assert (latest(filled).label, latest(filled).has_mask) == ("scratch", True)
    second = filled.annotate(number, "good", based_on=first, author="Bob")
    third = filled.annotate(number, None, based_on=second)
    assert (latest(filled).label, latest(filled).has_mask) == (None, False)
    listed = filled.read(list_annotations, number).annotations
    expected = [(third, None, "Ada"), (second, "good", "Bob"), (first, "scratch", "Ada")]
    assert [(one.id, one.label, one.author) for one in listed] == expected
    page = filled.read(list_annotations, number, None, 2)
    assert ([one.id for one in page.annotations], page.next_before) == ([third, second], second)
    rest = filled.read(list_annotations, number, second, 2)
    assert ([one.id for one in rest.annotations], rest.next_before) == ([first], None)
    stored = filled.stored.get(filled.read(find_mask, number, first))
    np.testing.assert_array_equal(decode_mask_values(stored, "m", classes=[1, 2, 255]), mask)
    with pytest.raises(RequestError, match="has no mask") as refusal:
        filled.read(find_mask, number, None)
    assert code_of(refusal) == (404, "no_mask")
    with pytest.raises(RequestError, match=f"has no annotation {second} with a mask"):
        filled.read(find_mask, number, second)


def test_an_annotation_that_its_author_has_not_seen_is_not_overwritten(filled):
    number = filled.add(1).id
    first = filled.annotate(number, "scratch", mask_of((1, 2, 3)))
    for based_on in (None, first + 1):
        found = f"The photograph '1' has the annotation {first} by Ada now, not the one that yours changes"
        with pytest.raises(RequestError, match=found) as refusal:
            filled.annotate(number, "good", based_on=based_on, author="Bob")
        assert code_of(refusal) == (409, "annotation_changed")
    assert len(filled.read(list_annotations, number).annotations) == 1
    second = filled.annotate(number, "good", based_on=first, author="Bob")
    assert filled.annotate(number, "good", based_on=first, author="Bob") == second  # a repeated request
    assert len(filled.read(list_annotations, number).annotations) == 2


def test_tests_of_annotations_set_every_field():
    fields = AnnotationContent.model_fields.items()
    assert [name for name, field in fields if getattr(EVERY_FIELD, name) == field.default] == []


@both_databases
def test_each_field_stays_unless_the_author_sets_it(filled):
    number, mask = filled.add(1).id, mask_of((1, 2, 3))
    first = filled.annotate(number, mask=mask, **EVERY_FIELD.model_dump())
    second = filled.annotate(number, "scratch", mask, first, "Bob")
    assert filled.annotate(number, "scratch", mask, first, "Bob") == second  # a repeated request
    stored = [latest(filled), *filled.read(list_annotations, number).annotations]
    assert [AnnotationContent.model_validate(one.model_dump()) for one in stored] == [EVERY_FIELD] * 3
    third = filled.annotate(number, "scratch", mask, second, is_boxes=False)
    assert (latest(filled).annotation_id, latest(filled).is_boxes) == (third, False)
    fourth = filled.annotate(number, "scratch", mask, third, is_boxes=True)
    filled.annotate(number, "scratch", based_on=fourth)  # without a mask there are no boxes
    assert (latest(filled).has_mask, latest(filled).is_boxes) == (False, False)


def test_removed_photographs_and_unknown_labels_are_rejected(filled):
    number = filled.add(1).id
    with pytest.raises(RequestError, match="Expected one of good, ignore, scratch, dent") as refusal:
        filled.annotate(number, "burr")
    assert code_of(refusal) == (400, "unknown_label")
    filled.write(remove_photograph, number, "Eve", NOW)
    with pytest.raises(RequestError, match="Eve has removed") as refusal:
        filled.annotate(number, "good")
    assert code_of(refusal) == (409, "photograph_removed")


@both_databases
@pytest.mark.parametrize("change", ["UPDATE {} SET author = 'x'", "DELETE FROM {}"])
def test_annotations_never_change(filled, change):
    filled.annotate(filled.add(1).id, "good")
    with pytest.raises(DBAPIError, match="append-only"), write_transaction(filled.engine) as connection:
        connection.execute(text(change.format("data_set_annotations")))


# === Masks ===


@pytest.mark.parametrize(
    ("label", "mask", "message"),
    [
        (
            "scratch",
            mask_of((3, 2, 3)),
            "has the value 3. Expected 0 = good, 1 = scratch, 2 = dent, 255 = ign",
        ),
        ("scratch", mask_of((2, 2, 3)), "has no pixel of the label 'scratch'"),
        ("scratch", mask_of((255, 2, 3)), "has no pixel of the label 'scratch'"),
        ("scratch", mask_of(), "has no pixel of the label 'scratch'"),
        ("good", mask_of((1, 2, 3)), "has defect pixels, but the label is 'good'"),
        ("ignore", mask_of((1, 2, 3)), "marks areas, but the label is 'ignore'"),
        (None, mask_of((255, 2, 3)), "marks areas, but the label is ''"),
        ("scratch", mask_of((1, 2, 3))[:-1], "is 48 × 31 px. Expected 48 × 32"),
    ],
)
def test_masks_that_contradict_label_or_photograph_are_rejected(label, mask, message):
    with pytest.raises(RequestError, match=message) as refusal:
        read_class_mask(encode_png(mask), HEIGHT, WIDTH, label, CLASSES)
    assert code_of(refusal) == (400, "bad_mask")


def test_a_damaged_or_large_mask_is_rejected():
    for data in (b"", b"no picture", encode_png(mask_of())[:-20], encode_png(np.zeros((99, 99), np.uint8))):
        with pytest.raises(ImageError):
            read_class_mask(data, HEIGHT, WIDTH, "good", CLASSES)


def test_a_good_photograph_may_have_ignored_areas():
    assert make_class_mask(mask_of(), "good", CLASSES) is None
    ignored = read_class_mask(encode_png(mask_of((255, 2, 3))), HEIGHT, WIDTH, "good", CLASSES)
    assert (ignored.width, ignored.height) == (WIDTH, HEIGHT)
    drawn_by_another_program = np.repeat(mask_of((255, 2, 3))[..., None], 3, axis=2)
    same = read_class_mask(encode_png(drawn_by_another_program), HEIGHT, WIDTH, "good", CLASSES)
    assert same.sha256 == ignored.sha256
