"""One model, three operating points: train once over a distribution of losses, then choose."""

from __future__ import annotations

from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from equipoise.classifiers import ConditionalClassifier, NeuralClassifier
from equipoise.training import Linear


def main() -> None:
    X, y = make_classification(3000, 20, n_informative=6, weights=[0.95], flip_y=0.02, random_state=0)
    X, X_valid, y, y_valid = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
    clf = ConditionalClassifier(
        "vs",
        distribution={"gamma": Linear(0, 0.3, 0), "tau": Linear(0, 3, 0.33)},
        estimator=NeuralClassifier(epochs=20, lr=0.005),
        random_state=0,
    ).fit(X, y)
    for metric, keywords in (
        ("average_precision", {}),
        ("precision_at_recall", {"recall": 0.9}),
        ("cost", {"cost_matrix": [[0, 1], [20, 0]]}),
    ):
        found = clf.tune(X_valid, y_valid, metric, **keywords)
        chosen = ", ".join(f"{name} = {value:.2f}" for name, value in found.params.items())
        print(f"{metric:20s} {found.value:.3f} at {chosen}")
    print(clf.frontier(X_valid, y_valid, recalls=[0.5, 0.7, 0.9]).round(3).to_string(index=False))


if __name__ == "__main__":
    main()
