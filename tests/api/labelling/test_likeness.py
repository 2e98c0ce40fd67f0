import numpy as np
import pytest

from api.labelling.likeness import NEGATIVE_WEIGHT, SHRINKAGE, Likeness


def test_likeness_is_the_discriminant_of_features_normalised_by_the_surface():
    features = np.random.default_rng(0).normal(5, [1, 2, 40], (30, 20, 3)).astype(np.float32)
    normalised = (features - features.mean((0, 1))) / (features.std((0, 1)) + 1e-3)
    likeness = Likeness(features)
    defect, other = likeness.sample(10, 10, 1), likeness.sample(3, 25, 1)
    disc = [(10, 10), (9, 10), (11, 10), (10, 9), (10, 11)]
    np.testing.assert_allclose(defect, np.mean([normalised[place] for place in disc], axis=0), rtol=1e-4)
    flat = normalised.reshape(-1, 3)
    matrix = (1 - SHRINKAGE) * flat.T @ flat / len(flat) + SHRINKAGE * np.eye(3)
    weights = np.linalg.solve(matrix + NEGATIVE_WEIGHT * np.outer(other, other), defect)
    found = likeness.measure([defect], [other])
    np.testing.assert_allclose(found, normalised @ weights / (weights @ defect), atol=1e-4)
    assert found.mean() == pytest.approx(0, abs=1e-4)
