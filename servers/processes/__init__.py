"""Listeners, workers, and what a signal changes in a running server."""
