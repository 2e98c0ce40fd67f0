"""The linear discriminant analysis as an affine map, with few examples and with very few."""

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.training.separable_classes import CHANNELS, make_separable, predict
from training.discriminant import ABSENT_LOGIT, MAX_COMPONENTS, SHRINKAGE, fit_discriminant, fit_log_odds


@pytest.mark.parametrize("number", [2, 4])
def test_the_map_gives_the_log_posteriors_of_the_discriminant_analysis(number):
    pooled, classes = make_separable(np.arange(72) % number)
    kernel, bias = fit_discriminant(pooled, classes, number)
    analysis = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=SHRINKAGE)
    pipeline = make_pipeline(StandardScaler(), PCA(MAX_COMPONENTS, random_state=0), analysis).fit(
        pooled, classes
    )
    others, _ = make_separable((np.arange(20) + 1) % number, distance=1.0)
    logits = others @ kernel + bias
    posteriors = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))
    np.testing.assert_allclose(posteriors, pipeline.predict_proba(others), atol=1e-6)
    assert posteriors.argmax(axis=1).std() > 0


def test_classes_with_one_or_two_examples_are_learnt_and_one_without_is_never_predicted():
    pooled, classes = make_separable([0] * 20 + [1] * 20 + [2] + [4] * 2)
    kernel, bias = fit_discriminant(pooled, classes, 5)
    assert np.isfinite(kernel).all()
    assert np.isfinite(bias).all()
    assert predict(pooled, kernel, bias).tolist() == classes.tolist()
    anything = np.random.default_rng(1).normal(100, 300, (500, CHANNELS))
    assert set(predict(anything, kernel, bias)) == {0, 1, 2, 4}


@pytest.mark.parametrize("constant", [False, True])
def test_identical_photographs_of_a_class_give_a_finite_map(constant):
    pooled, classes = make_separable([0, 1])
    pooled, classes = np.repeat(pooled, 3, axis=0), np.repeat(classes, 3)
    if constant:
        pooled[:] = pooled[0]
    kernel, bias = fit_discriminant(pooled, classes, 3)
    assert np.abs(kernel).max() < 1e6
    assert bias.tolist() == [0, 0, ABSENT_LOGIT]


@pytest.mark.parametrize("classes", [[1], [1, 1], [0, 1], [1, 0, 1]])
def test_very_few_examples_give_a_finite_map(classes):
    pooled, classes = make_separable(classes)
    kernel, bias = fit_discriminant(pooled, classes, 3)
    assert np.isfinite(kernel).all()
    assert set(predict(pooled, kernel, bias)) <= set(classes)


def test_log_odds_are_positive_for_positive_examples_and_0_without_both_kinds():
    features, classes = make_separable(np.arange(40) % 2)
    kernel, bias = fit_log_odds(features, classes == 1)
    assert ((features @ kernel + bias > 0) == (classes == 1)).all()
    for alike in (classes >= 0, classes < 0):
        kernel, bias = fit_log_odds(features, alike)
        assert bias == 0 and not kernel.any()
