"""Estimators in scikit-learn's manner: each fit is charged, and exact wherever it is made of sums."""

from defocus.learning.estimators.additive import AdditiveModel
from defocus.learning.estimators.kmeans import KMeans
from defocus.learning.estimators.linear import LinearRegression
from defocus.learning.estimators.logistic import LogisticRegression
from defocus.learning.estimators.naive_bayes import NaiveBayes
from defocus.learning.estimators.pca import PCA, StandardScaler

__all__ = [
    "PCA",
    "AdditiveModel",
    "KMeans",
    "LinearRegression",
    "LogisticRegression",
    "NaiveBayes",
    "StandardScaler",
]
