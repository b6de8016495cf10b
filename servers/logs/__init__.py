"""Logs: JSON lines on stderr, without secrets."""
