"""
One model, many operating points
================================

A network is trained once over a distribution of losses and told which loss it is asked about. Costs, recall
targets and metrics are then chosen without training again (Lieberman, Ravindran, Yuan and Tomasi).
"""

from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from equipoise.classifiers import ConditionalClassifier, NeuralClassifier, plot_tradeoff
from equipoise.training import Linear

X, y = make_classification(3000, 20, n_informative=6, weights=[0.95], flip_y=0.02, random_state=0)
X, X_valid, y, y_valid = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
clf = ConditionalClassifier(
    "vs",
    distribution={"gamma": Linear(0, 0.3, 0), "tau": Linear(0, 3, 0.33)},
    estimator=NeuralClassifier(epochs=15, lr=0.005, verbose=False),
    random_state=0,
).fit(X, y)

# %%
# Three wishes, three points of the same model.

wishes = (
    ("average_precision", {}),
    ("precision_at_recall", {"recall": 0.9}),
    ("cost", {"cost_matrix": [[0, 1], [20, 0]]}),
)
for metric, keywords in wishes:
    found = clf.tune(X_valid, y_valid, metric, **keywords)
    chosen = ", ".join(f"{name} = {value:.2f}" for name, value in found.params.items())
    print(f"{metric:20s} {found.value:.3f} at {chosen}")
print(clf.frontier(X_valid, y_valid, recalls=[0.5, 0.7, 0.9]).round(3).to_string(index=False))

# %%
# How the choice of τ trades one metric for another, all for one pass of the backbone.

table = clf.survey(X_valid, y_valid)
figure = plot_tradeoff(table, "auc", ["brier", "precision_at_recall", "best_f1"], color="tau")
