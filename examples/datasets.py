"""
Imbalanced data in a minute
===========================

Embedded sets, profiles, published class counts and synthetic data.
"""

import numpy as np

from equipoise import datasets

# %%
# An embedded set; X, y and the names of classes and features.
digits = datasets.load_digits_imbalanced(random_state=0)
print(digits)

# %%
# Any labeled data can be made imbalanced; the same seed gives nested subsets.
X, y, rows = datasets.make_imbalanced(
    digits.X, digits.y, profile="step", ratio=5, random_state=0, return_indices=True
)
print("step profile, ratio 5:", np.bincount(y))

# %%
# Class counts of published experiments, by name.
for name in ("fashion-mnist-mondal", "cifar10-lt-100", "cifar10-pair-beta100"):
    print(f"{name:24}", datasets.class_counts(name), "|", datasets.PROFILES[name].source)

# %%
# Teacher and student: anomalies are rare by nature, less so in the training set.
model = datasets.make_teacher_student(n_features=100, bias=-1.5, random_state=0)
train = model.sample_train(800, fraction=0.3, random_state=1)
test = model.sample_test(10_000, random_state=2)
print(
    f"anomalies: {model.intrinsic_fraction:.3f} by the theory, {test.y.mean():.3f} in the test set, "
    f"{train.y.mean():.3f} in the training set"
)

# %%
# A Gaussian mixture with chosen norms and angles of its centroids.
mixture = datasets.make_gaussian_mixture(
    200,
    variances=[0.5, 0.25],
    weights=[0.9, 0.1],
    gram=datasets.gram_matrix(norms=[1.0, 0.5], cosines=0.3),
    random_state=0,
)
print("centroid gram matrix per dimension:\n", mixture.gram.round(3))

# %%
# Files: found under data_home= or EQUIPOISE_DATA; what is missing is said, with where it was looked for.
try:
    fashion = datasets.load_fashion_mnist("train", pixels="uint8")
except FileNotFoundError as error:
    print(error)
else:
    print(fashion.imbalanced(counts=datasets.class_counts("fashion-mnist-mondal"), random_state=0).scaled())
