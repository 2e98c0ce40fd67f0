"""A data set is sent to a service: what is missing, without changing what people did there."""

import hashlib
from dataclasses import replace
from types import SimpleNamespace

import cv2
import numpy as np
import pytest

from datasets.checking import check_dataset
from datasets.loading import load_dataset
from datasets.pushing import push
from datasets.splitting import without_split
from segdec.data_set_schemas import KnownPhotograph
from segdec.errors import ServiceError
from segdec.images import decode_mask_values


class Target:
    """The data set of a service, in memory."""

    def __init__(self, classes=("scratch",)):
        self.classes, self.photographs, self.annotations = list(classes), {}, {}
        self.fails, self.requests = {}, 0

    def add_classes(self, names, *, unclear_are_defects):  # noqa: ARG002
        self.classes += names

    def known_photographs(self, digests):
        return {digest: self.photographs[digest] for digest in digests if digest in self.photographs}

    def add_photograph(self, data, *, name, part, split):
        self.requests += 1
        if name in self.fails:
            raise ServiceError("Not this one.", code="bad", status=self.fails[name], request_id="1")
        digest = hashlib.sha256(data).hexdigest()
        if digest in self.photographs:
            self.photographs[digest] = self.photographs[digest].model_copy(update={"split": split})
            return self.photographs[digest]
        facts = {"name": name, "label": None, "annotation_id": None, "sha256": digest, "is_removed": False}
        facts["split"] = split or None
        self.photographs[digest] = KnownPhotograph(id=len(self.photographs), **facts)
        self.annotations[name] = SimpleNamespace(part=part, split=split)
        return self.photographs[digest]

    def annotate(self, photograph, content, mask):
        self.requests += 1
        changed = photograph.model_copy(update={"label": content.label, "annotation_id": 1})
        self.photographs[photograph.sha256] = changed
        found = self.annotations[photograph.name]
        found.content = content
        found.mask = None if mask is None else decode_mask_values(mask, "mask", classes=())


@pytest.fixture
def dataset(tmp_path, write_picture):
    """A good photograph, and defects with a mask of two classes, boxes, and a class alone."""
    for name in "abcd":
        write_picture(tmp_path / f"{name}.png")
    values = np.zeros((12, 20), np.uint8)
    values[0], values[4], values[5] = 255, 1, 2
    cv2.imwrite(str(tmp_path / "mask.png"), values)
    (tmp_path / "classes.txt").write_text("dent\nScratch\n")
    (tmp_path / "manifest.csv").write_text(
        "image,label,class_mask,box,group\n"
        'a.png,good,,,\nb.png,dent,mask.png,,plate\nc.png,Scratch,,"2,1,3,2",\nd.png,dent,,,plate\n'
    )
    return check_dataset(load_dataset("manifest", tmp_path)).dataset


def test_photographs_labels_and_masks_are_sent(dataset):
    target = Target()
    result = push(dataset, target)
    assert result.counts == {"sent": 4, "labelled": 4} and result.problems == ()
    assert target.classes == ["scratch", "dent"]
    found = target.annotations
    labels = {name: (one.content.label, one.part, one.content.is_boxes) for name, one in found.items()}
    assert labels == {
        "a": ("good", "", False),
        "b": ("dent", "plate", False),
        "c": ("scratch", "", True),
        "d": ("dent", "plate", False),
    }
    mask = found["b"].mask
    assert (mask[0] == 255).all() and (mask[4] == 2).all() and (mask[5] == 1).all()
    assert set(np.unique(found["c"].mask)) == {0, 1}
    assert found["a"].mask is None and found["d"].mask is None


def test_the_split_of_the_data_set_is_sent(dataset):
    target, words = Target(), ("train", "train", "test", None)
    items = [item.with_split(word) for item, word in zip(dataset.items, words, strict=True)]
    items[0] = items[0].with_split("train", fold=3)
    push(replace(dataset, items=tuple(items)), target)
    assert [target.annotations[name].split for name in "abcd"] == ["fold_3", "train", "test", "left_out"]
    unsplit = Target()
    push(without_split(dataset), unsplit)
    assert {one.split for one in unsplit.annotations.values()} == {""}


def test_photographs_without_a_split_get_one_and_others_keep_theirs(dataset):
    target = Target()
    push(without_split(dataset), target)
    split = replace(dataset, items=tuple(item.with_split("train") for item in dataset.items))
    assert push(split, target).counts == {"present": 4, "split": 4}
    assert {one.split for one in target.photographs.values()} == {"train"}
    requests = target.requests
    other = replace(split, items=(split.items[0].with_split("test"), *split.items[1:]))
    assert push(other, target).counts == {"present": 4, "other_split": 1}
    assert push(without_split(dataset), target).counts == {"present": 4}
    assert target.requests == requests and {one.split for one in target.photographs.values()} == {"train"}


def test_again_sends_nothing_and_what_people_did_stays(dataset):
    target = Target()
    push(dataset, target)
    requests = target.requests
    assert push(dataset, target).counts == {"present": 4}
    assert target.requests == requests
    first, second, *_ = target.photographs.values()
    target.photographs[first.sha256] = first.model_copy(update={"label": "other"})
    target.photographs[second.sha256] = second.model_copy(update={"is_removed": True})
    assert push(dataset, target).counts == {"present": 3, "kept": 1, "removed": 1}
    assert target.requests == requests


def test_interrupted_push_continues(dataset):
    target = Target()

    def interrupt(items):
        yield items[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        push(dataset, target, progress=interrupt)
    known = len(target.photographs)
    counts = push(dataset, target).counts
    assert counts["sent"] + known == 4 and len(target.photographs) == 4


def test_rejected_photographs_are_problems_and_others_are_sent(dataset):
    target = Target()
    target.fails = {"b": 413}
    result = push(dataset, target)
    assert result.counts["sent"] == 3
    assert [(problem.name, problem.text) for problem in result.problems] == [("b", "Not this one.")]
    target.fails = {"b": 403}
    with pytest.raises(ServiceError):
        push(dataset, target)
