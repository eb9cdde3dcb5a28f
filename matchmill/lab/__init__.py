"""The laboratory: workloads, experiments, the demo, `matchmill bench`. The product does not use it."""
