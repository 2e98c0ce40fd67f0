import numpy as np

from training.metrics.regions import Overlap, measure_overlaps, measure_sizes

TRUTH = np.array(
    [
        [255, 0, 0, 0, 0],
        [0, 255, 0, 0, 9],  # touches the first pixel at a corner: one region
        [0, 0, 0, 0, 255],
        [255, 0, 0, 0, 255],
    ],
    np.uint8,
)


def test_overlaps_count_the_pixels_of_the_mask_inside_each_region():
    mask = np.zeros_like(TRUTH)
    mask[1, :] = 1  # any value is defect
    outside = 14, 3  # of 20 pixels 6 are in a region, and of the 5 marked ones 2
    expected = [(2, 1), (3, 1), (1, 0)]
    assert measure_overlaps(mask, TRUTH) == tuple(Overlap(*counts, 0, 0, *outside) for counts in expected)


def test_a_mask_of_everything_covers_the_regions_by_chance():
    overlaps = measure_overlaps(np.ones_like(TRUTH), TRUTH)
    assert [(overlap.share, overlap.outside_share) for overlap in overlaps] == [(1, 1)] * 3
    (overlap,) = measure_overlaps(np.zeros((2, 2), np.uint8), np.ones((2, 2), np.uint8))
    assert (overlap.outside_px, overlap.outside_share) == (0, 0)  # a defect that fills the photograph


def test_sizes_are_binned_by_fixed_areas():
    overlaps = [Overlap(1, 1), Overlap(63, 0), Overlap(64, 32), Overlap(1023, 1023), Overlap(1024, 256)]
    sizes = measure_sizes(overlaps)
    assert [(size.from_px, size.below_px) for size in sizes] == [
        (1, 64),
        (64, 256),
        (256, 1024),
        (1024, None),
    ]
    assert [(size.regions, size.found) for size in sizes] == [(2, 1), (1, 1), (1, 1), (1, 1)]
    assert [size.mean_overlap for size in sizes] == [0.5, 0.5, 1.0, 0.25]
    (_, _, _, largest) = measure_sizes([Overlap(2000, 1, 0, 0, 10, 1), Overlap(2000, 1, 0, 0, 10, 4)])
    assert largest.mean_outside == 0.25
    assert sizes[0].to_dict()["found_share"] == 0.5
