"""Logs: lines on stderr, of JSON or in columns, without secrets."""
