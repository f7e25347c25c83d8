"""Every estimator, ready to be fitted to two features from 0 to 1 and targets that are 0 or 1."""

from defocus.learning import (
    PCA,
    AdditiveModel,
    KMeans,
    LinearRegression,
    LogisticRegression,
    NaiveBayes,
    StandardScaler,
)

__all__ = ["EVERY", "ROWS"]

ROWS = 997
EVERY = [
    LogisticRegression(classes=[0, 1], max_iter=5),
    NaiveBayes(classes=[0, 1], bounds=(0, 1)),
    AdditiveModel(classes=[0, 1], bounds=(0, 1), max_depth=3, max_iter=5),
    LinearRegression(target=(0, 1), max_iter=5),
    KMeans(2, max_iter=1),
    PCA(),
    StandardScaler(bounds=(0, 1)),
]
