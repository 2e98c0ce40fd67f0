"""Near twins among photographs whose likeness is known, because they are made here."""

import cv2
import numpy as np
import pytest

from datasets import near_duplicates
from datasets.near_duplicates import (
    THRESHOLD,
    THUMBNAIL_BYTES,
    distinctive_features,
    duplicate_clusters,
    nearest_duplicates,
    normalized_thumbnail,
    similar_pairs,
)


def surface(seed, *, kind=None, size=(160, 96)):
    """Something of its own, over what all parts of its `kind` show ten times as strongly."""
    own = texture(seed, size)
    return scaled(own if kind is None else 10 * texture(-1 - kind, size) + own)


def texture(seed, size):
    drawn = np.random.default_rng(abs(seed) * 2 + (seed < 0)).normal(size=(24, 24))
    return cv2.resize(drawn, size[::-1], interpolation=cv2.INTER_CUBIC)


def scaled(values):
    low, high = values.min(), values.max()
    return (20 + 180 * (values - low) / (high - low)).astype(np.uint8)[:, :, None]


def features(images):
    return distinctive_features([normalized_thumbnail(image) for image in images])


def pairs(found):
    return {
        (int(one), int(other)) for part in found for one, other in zip(part.first, part.second, strict=True)
    }


def moved(image):
    shift = np.float32([[1, 0, 1], [0, 1, 1]])
    return cv2.warpAffine(image, shift, image.shape[1::-1], borderMode=cv2.BORDER_REPLICATE)[:, :, None]


def halved(image):
    return cv2.resize(image, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)[:, :, None]


def compressed(image):
    return cv2.imdecode(cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 50])[1], 0)[:, :, None]


def lit_from_the_side(image):
    return np.clip(image * np.linspace(0.6, 1.2, image.shape[1])[None, :, None], 0, 255).astype(np.uint8)


def dark_noisy_colour(image):
    dark = 255 * (image / 255.0) ** 2 * 0.7 + np.random.default_rng(0).normal(0, 7, image.shape)
    return np.clip(dark * (1, 0.5, 0.3), 0, 255).astype(np.uint8)


ALTERED = [moved, halved, compressed, lit_from_the_side, dark_noisy_colour]


@pytest.mark.parametrize("alter", ALTERED)
def test_an_altered_photograph_is_a_near_duplicate_and_no_other_is(alter):
    images = [surface(seed) for seed in range(30)]
    found = pairs(similar_pairs(features([*images, alter(images[3])])))
    assert found == {(3, 30)}


@pytest.mark.parametrize("kinds", [1, 4])
def test_parts_in_a_fixture_are_no_duplicates(kinds):
    """What parts of a kind share is far stronger than what tells them apart."""
    images = [surface(seed, kind=seed % kinds) for seed in range(120)]
    assert np.median(np.corrcoef([image.ravel() for image in images[::kinds][:20]])) > 0.95
    assert pairs(similar_pairs(features(images))) == set()
    assert pairs(similar_pairs(features([*images, halved(images[5])]))) == {(5, 120)}


def test_blank_photographs_are_nobodys_duplicates():
    blank = [np.full((40, 40, 1), value, np.uint8) for value in (0, 90, 90, 255)]
    found = features([*blank, *(surface(seed) for seed in range(20))])
    assert not found[:4].any()
    assert np.linalg.norm(found[4:], axis=1) == pytest.approx(np.ones(20))


def as_features(angles):
    """Directions in a plane: what correlates is known."""
    found = np.zeros((len(angles), THUMBNAIL_BYTES), np.float32)
    found[:, 0], found[:, 1] = np.cos(np.deg2rad(angles)), np.sin(np.deg2rad(angles))
    return found


@pytest.fixture(params=[3, 100])
def blocks(request, monkeypatch):
    monkeypatch.setattr(near_duplicates, "_BLOCK", request.param)


@pytest.mark.usefixtures("blocks")
def test_duplicates_of_duplicates_are_one_cluster():
    assert np.cos(np.deg2rad(44)) > THRESHOLD > np.cos(np.deg2rad(46))
    found = duplicate_clusters(as_features([40, 300, 120, 0, 80, 180, 260]))
    assert [cluster.tolist() for cluster in found] == [[0, 2, 3, 4], [1, 6]]


@pytest.mark.usefixtures("blocks")
def test_each_photograph_is_named_with_its_nearest_duplicate():
    found = nearest_duplicates(
        as_features([0, 30, 40, 200, 90]), lambda pairs: np.ones(len(pairs.first), np.bool_)
    )
    assert list(zip(found.first.tolist(), found.second.tolist(), strict=True)) == [(1, 2), (0, 1)]
    assert found.correlation == pytest.approx(np.cos(np.deg2rad([10, 30])), abs=1e-6)
    apart = nearest_duplicates(as_features([0, 30, 40, 200, 90]), lambda pairs: pairs.first == 0)
    assert list(zip(apart.first.tolist(), apart.second.tolist(), strict=True)) == [(0, 1), (0, 2)]
