"""The laboratory: workloads, experiments, demo, `matchmill bench`; never used by the product."""
