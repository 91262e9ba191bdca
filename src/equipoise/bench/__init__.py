"""Studies as grids of pure cells: resumable, on one machine or a cluster."""
