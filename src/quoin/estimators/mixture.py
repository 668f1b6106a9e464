"""A mixture of normal laws as a scikit-learn density and clustering."""

import warnings

import numpy as np
import torch
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data
from torch import Tensor

from quoin.errors import Mistake, nearest, shown
from quoin.estimators.given import KINDS, as_tensor, given_rows, hold
from quoin.models import GaussianMixture, em_from_starts
from quoin.prob import DiagonalNormals, FullNormals, SphericalNormals, TiedNormals

__all__ = ["MixtureDensity"]

FAMILIES = {"full": FullNormals, "tied": TiedNormals, "diag": DiagonalNormals, "spherical": SphericalNormals}


class MixtureDensity(DensityMixin, BaseEstimator):
    """p(x) = Σ_i φ_i N(x; μ_i, Σ_i) fitted by EM; predicts the component with the largest share in x.

    `covariance_type` is "full", "tied", "diag" or "spherical". No variance falls below `min_variance` times that of the data, in any
    direction: EM then keeps its promise that the likelihood never falls, which adding to variances would break.

    >>> MixtureDensity(2, random_state=0).fit([[0.0], [0.2], [5.0], [5.2]]).means_.round(3)
    array([[0.1],
           [5.1]])

    Notes: D6-9, D6-10.
    """

    def __init__(self, n_components=1, *, covariance_type="full", tol=1e-5, min_variance=1e-6, max_iter=200, n_init=1, random_state=None):
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.min_variance = min_variance
        self.max_iter = max_iter
        self.n_init = n_init
        self.random_state = random_state

    def fit(self, X, y=None):
        for name, at_least in (("n_components", 1), ("tol", 0.0), ("min_variance", 0.0), ("max_iter", 1), ("n_init", 1)):
            hold(name, getattr(self, name), at_least=at_least)
        if self.covariance_type not in tuple(FAMILIES):  # a list has no hash
            raise Mistake(f"there is no covariance_type {shown(self.covariance_type)}: {nearest(str(self.covariance_type), FAMILIES)}")
        rows = as_tensor(np.asarray(validate_data(self, X, dtype=KINDS, ensure_min_samples=2)))
        found = em_from_starts(
            rows,
            self.n_components,
            FAMILIES[self.covariance_type],
            generator=torch.Generator().manual_seed(int(check_random_state(self.random_state).randint(2**31))),
            starts=self.n_init,
            num_steps=self.max_iter,
            tolerance=self.tol,
            min_variance=self.min_variance,
        )
        self.model_ = GaussianMixture(found.output)
        self.converged_, self.n_iter_ = found.converged, len(found.log_likelihoods) - 1
        self.lower_bound_ = found.log_likelihoods[-1] / len(rows)
        if not found.converged:
            told = f"EM still gained more than tol = {self.tol} a point after {self.max_iter} steps; raise max_iter or tol"
            warnings.warn(told, ConvergenceWarning, stacklevel=2)
        return self

    @property
    def weights_(self) -> np.ndarray:
        return self.model_.weights.numpy()

    @property
    def means_(self) -> np.ndarray:
        return self.model_.means.numpy()

    @property
    def covariances_(self) -> np.ndarray:
        """(k, d, d), (d, d), (k, d) or (k,), by `covariance_type`."""
        return self.model_.spread.numpy()

    def _rows(self, X) -> Tensor:
        check_is_fitted(self)
        return given_rows(self, X).to(self.model_.means.dtype)

    def score_samples(self, X) -> np.ndarray:
        """ln p(x) of each row."""
        rows = self._rows(X)
        return self.model_.log_prob(rows).numpy()

    def score(self, X, y=None) -> float:
        """The mean of ln p(x)."""
        return float(self.score_samples(X).mean(dtype=np.float64))

    def predict_proba(self, X) -> np.ndarray:
        rows = self._rows(X)
        return self.model_.responsibilities(rows).numpy()

    def predict(self, X) -> np.ndarray:
        rows = self._rows(X)
        return self.model_.predict(rows).numpy()

    def fit_predict(self, X, y=None) -> np.ndarray:
        return self.fit(X).predict(X)

    def sample(self, n_samples=1, *, random_state=None) -> np.ndarray:
        """New rows from the fitted law."""
        check_is_fitted(self)
        seed = int(check_random_state(random_state).randint(2**31))
        return self.model_.sample(n_samples, generator=torch.Generator().manual_seed(seed)).numpy()

    def aic(self, X) -> float:
        """2 p - 2 Σ ln p(x) with p free numbers; lower is better."""
        rows = self._rows(X)
        return self.model_.aic(rows)

    def bic(self, X) -> float:
        """p ln n - 2 Σ ln p(x); lower is better."""
        rows = self._rows(X)
        return self.model_.bic(rows)
