"""Fits a linear discriminant analysis to few examples with many features."""

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MAX_COMPONENTS = 40
"""Maximum number of principal components of the features that are used."""

SHRINKAGE = 0.2
"""Weight of the mean variance in the covariance within the classes, which few examples do not determine."""

ABSENT_LOGIT = -1e4
"""Logit of a class without examples, before the scale."""


def fit_discriminant(features: Floats, classes: Integers, number: int) -> tuple[Floats, Floats]:
    """Fits kernel [F, K] and bias [K] of the logits of K = `number` classes to features [N, F].

    They are those of a linear discriminant analysis with shrinkage (Friedman, "Regularized discriminant
    analysis", 1989) of the principal components. A class without examples is never predicted; without two
    different examples of any class, all others have the same logit.
    """
    kernel, bias = np.zeros((features.shape[1], number)), np.full(number, ABSENT_LOGIT)
    present = np.unique(classes)
    bias[present] = 0.0
    differ = any(np.ptp(features[classes == each], axis=0).any() for each in present)
    if len(present) > 1 and differ:
        scaler, pca = StandardScaler(), PCA(min(MAX_COMPONENTS, *features.shape), random_state=0)
        analysis = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=SHRINKAGE)
        pipeline = make_pipeline(scaler, pca, analysis)
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # about one example of a class
            pipeline.fit(features, classes)
        coefficients = (analysis.coef_ @ pca.components_ / scaler.scale_).T
        fitted = present[-coefficients.shape[1] :]  # of two classes, only the difference of the second
        kernel[:, fitted] = coefficients
        bias[fitted] = pipeline.decision_function(np.zeros((1, features.shape[1])))
    return kernel, bias


def fit_log_odds(features: Floats, positive: NDArray[np.bool_]) -> tuple[Floats, float]:
    """Fits kernel [F] and bias of the log-odds that an example is positive to features [N, F].

    See `fit_discriminant`. They are 0 if there is no positive or no negative example.
    """
    if positive.all() or not positive.any():
        return np.zeros(features.shape[1]), 0.0
    kernel, bias = fit_discriminant(features, positive.astype(np.int64), 2)
    return np.diff(kernel)[:, 0], float(np.diff(bias)[0])
