"""scikit-learn classifiers."""
