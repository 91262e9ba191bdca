"""The main job: compare treatments of imbalance on a table, choose one, set its operating point, save it."""
