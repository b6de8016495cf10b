"""Benchmarks: what it costs, as ratios taken in one run."""
