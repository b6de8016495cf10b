"""Benchmarks: what cloudid costs. Every figure is a ratio to something measured in the same run."""
