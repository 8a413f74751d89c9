"""scikit-learn's own checks of an estimator, on graphs without edges.

The checks hand over tables, not graphs: each row is a node here, and no edge joins any two. What
does not apply is listed with its reason.
"""

import numpy as np
import pytest

from lgdgcn import LGDClassifier

estimator_checks = pytest.importorskip("sklearn.utils.estimator_checks")
pytest.importorskip("sklearn", minversion="1.6")

NO_EDGES = np.empty((2, 0), dtype=np.int64)


class TableClassifier(LGDClassifier):
    """LGDClassifier on the rows of a table."""

    transform = (
        property()
    )  # absent: units are [N, M, d], a transformer of scikit-learn gives [N, d]

    def fit(self, X, y=None):
        return super().fit(X, y, edge_index=NO_EDGES)

    def predict(self, X):
        return super().predict(X, edge_index=NO_EDGES)

    def predict_proba(self, X):
        return super().predict_proba(X, edge_index=NO_EDGES)

    def score(self, X, y):
        return super().score(X, y, edge_index=NO_EDGES)


WORDS = "refused as it should be, in words of this package that name the value found and the fix"
NOT_APPLICABLE = {
    "check_n_features_in_after_fitting": WORDS,
    "check_complex_data": WORDS,
    "check_estimators_empty_data_messages": WORDS,
    "check_classifiers_regression_target": WORDS,
    "check_fit2d_1sample": WORDS,
    "check_fit2d_predict1d": WORDS,
    "check_requires_y_none": WORDS,
    "check_class_weight_classifiers": "class_weight is None or balanced, no weights by class",
    "check_dtype_object": "features are numbers; a table with text is read by from_pandas",
    "check_classifiers_classes": "-1 is an unlabelled node, as in sklearn.semi_supervised",
    "check_supervised_y_2d": "labels [N, 1] are one label per node, without a warning, as in PyG",
}


@pytest.mark.filterwarnings("ignore")  # small tables teach little, which every fit says
@estimator_checks.parametrize_with_checks(
    [TableClassifier(budget="none", factors=2, hidden_channels=8, epochs=20, device="cpu")],
    expected_failed_checks=lambda estimator: NOT_APPLICABLE,
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)
