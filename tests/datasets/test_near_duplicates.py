"""Near duplicates among photographs whose likeness is known, because they are made here."""

import cv2
import numpy as np
import pytest

from datasets import near_duplicates
from datasets.near_duplicates import (
    MIN_PHOTOGRAPHS,
    Pairs,
    duplicate_clusters,
    near_duplicate_pairs,
    nearest_pairs,
    normalized_thumbnail,
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


def found_pairs(images):
    found = near_duplicate_pairs([normalized_thumbnail(image) for image in images])
    return set(zip(found.first.tolist(), found.second.tolist(), strict=True))


def warped(image, *, shift=(0, 0), degrees=0.0):
    matrix = cv2.getRotationMatrix2D(((image.shape[1] - 1) / 2, (image.shape[0] - 1) / 2), degrees, 1)
    matrix[:, 2] += shift
    return cv2.warpAffine(image, matrix, image.shape[1::-1], borderMode=cv2.BORDER_REFLECT)[:, :, None]


def moved(image):
    return warped(image, shift=(2, 3))  # 2 % of width and height


def rotated(image):
    return warped(image, degrees=2)


def cropped(image):
    return image[3:157, 0:92]  # 4 % of height and width


def halved(image):
    return cv2.resize(image, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)[:, :, None]


def compressed(image):
    return cv2.imdecode(cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 50])[1], 0)[:, :, None]


def lit_from_the_side(image):
    return np.clip(image * np.linspace(0.6, 1.2, image.shape[1])[None, :, None], 0, 255).astype(np.uint8)


def dark_noisy(image):
    noise = np.random.default_rng(1).normal(0, 1, image.shape)
    return np.clip(image * 0.8 + noise, 0, 255).astype(np.uint8)


def dark_noisy_colour(image):
    dark = 255 * (image / 255.0) ** 2 * 0.7 + np.random.default_rng(0).normal(0, 7, image.shape)
    return np.clip(dark * (1, 0.5, 0.3), 0, 255).astype(np.uint8)


ALTERED = [moved, rotated, cropped, halved, compressed, lit_from_the_side, dark_noisy_colour]


@pytest.mark.parametrize("alter", ALTERED)
def test_an_altered_photograph_is_a_near_duplicate_and_no_other_is(alter):
    images = [surface(seed) for seed in range(30)]
    assert found_pairs([*images, alter(images[3])]) == {(3, 30)}


@pytest.mark.parametrize("kinds", [1, 4])
def test_parts_in_a_fixture_are_no_duplicates(kinds):
    """What parts of a kind share is far stronger than what distinguishes them."""
    images = [surface(seed, kind=seed % kinds) for seed in range(60)]
    assert np.median(np.corrcoef([image.ravel() for image in images[::kinds][:15]])) > 0.95
    assert found_pairs([*images, compressed(images[5]), moved(images[8])]) == {(5, 60), (8, 61)}


def test_exposures_of_each_part_are_found():
    """Every photograph has duplicates: the neighbours behind them show other parts."""
    images = [lit(surface(seed, kind=0)) for seed in range(12) for lit in (np.array, compressed, dark_noisy)]
    clusters = {frozenset(pair) for pair in found_pairs(images)}
    assert clusters == {
        frozenset((3 * part + one, 3 * part + other))
        for part in range(12)
        for one, other in [(0, 1), (0, 2), (1, 2)]
    }


def test_bursts_of_each_part_are_found():
    """Four photographs of each part, with small shifts and other brightness."""
    images = [
        np.clip(brightness * warped(surface(part, kind=0), shift=shift), 0, 255).astype(np.uint8)
        for part in range(20)
        for shift, brightness in [((0, 0), 1), ((1, -1), 0.9), ((-1, 0.5), 1.1), ((0.5, 1), 0.8)]
    ]
    found = duplicate_clusters(80, near_duplicate_pairs([normalized_thumbnail(image) for image in images]))
    assert [cluster.tolist() for cluster in found] == [
        list(range(4 * part, 4 * part + 4)) for part in range(20)
    ]


def test_parts_in_any_orientation_are_no_duplicates():
    """The nearest neighbours of a part are others at similar angles, and all the rest are far from it."""
    angles = np.random.default_rng(0).uniform(0, 360, 100)
    shared = 3 * texture(-1, (96, 96))
    images = [
        warped(scaled(shared + texture(part, (96, 96))), degrees=angle) for part, angle in enumerate(angles)
    ]
    assert found_pairs([*images, compressed(images[5]), dark_noisy(images[8])]) == {(5, 100), (8, 101)}


def test_rare_parts_that_resemble_each_other_are_no_duplicates():
    """Two broken parts are far from all others, but not near each other by the measure of the set."""
    whole = [surface(seed, kind=0) for seed in range(30)]
    broken = [surface(seed, kind=1) for seed in range(100, 102)]
    assert found_pairs([*whole, *broken]) == set()
    assert found_pairs([*whole, *broken, compressed(broken[0])]) == {(30, 32)}


def test_blank_photographs_are_nobodys_duplicates():
    blank = [np.full((40, 40, 1), value, np.uint8) for value in (0, 90, 90, 255)]
    assert found_pairs([*blank, *(surface(seed) for seed in range(20))]) == set()
    assert found_pairs([blank[0]] * 20) == set()


def test_photographs_that_are_all_the_same_are_all_duplicates():
    found = near_duplicate_pairs([normalized_thumbnail(surface(0))] * 12)
    assert [len(cluster) for cluster in duplicate_clusters(12, found)] == [12]


def test_few_photographs_do_not_show_how_much_parts_differ():
    images = [surface(seed) for seed in range(MIN_PHOTOGRAPHS - 2)]
    assert found_pairs([*images, images[0]]) == set()
    assert found_pairs([*images, surface(50), images[0]]) == {(0, MIN_PHOTOGRAPHS - 1)}


def as_pairs(*pairs):
    first, second, distance = zip(*pairs, strict=True)
    return Pairs(np.array(first), np.array(second), np.array(distance, np.float32))


def test_duplicates_of_duplicates_are_one_cluster():
    found = duplicate_clusters(7, as_pairs((0, 3, 0.1), (2, 4, 0.2), (3, 4, 0.3), (1, 6, 0.4)))
    assert [cluster.tolist() for cluster in found] == [[0, 2, 3, 4], [1, 6]]


def test_each_photograph_is_named_with_its_nearest_duplicate():
    found = nearest_pairs(as_pairs((1, 2, 0.1), (0, 1, 0.2), (0, 2, 0.3), (1, 3, 0.4)))
    assert list(zip(found.first.tolist(), found.second.tolist(), strict=True)) == [(1, 2), (0, 1), (1, 3)]


def test_the_same_set_is_searched_once(monkeypatch):
    """`fit` and then its training need the near duplicates of the same photographs."""
    thumbnails = [normalized_thumbnail(surface(seed)) for seed in range(900, 912)]
    searched = []
    candidates = near_duplicates._candidates
    monkeypatch.setattr(near_duplicates, "_candidates", lambda own: searched.append(own) or candidates(own))
    first, again = near_duplicate_pairs(thumbnails), near_duplicate_pairs(list(thumbnails))
    assert len(searched) == 1
    assert first is again
    near_duplicate_pairs(thumbnails[1:])
    assert len(searched) == 2
