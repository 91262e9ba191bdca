"""scikit-learn samplers with provenance and a quality gate."""
