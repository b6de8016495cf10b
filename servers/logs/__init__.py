"""Logs: lines on stderr, of JSON or in columns, without secrets."""

from .logs import EventLog, LogFile, LogLevel, adopt_libraries, describe_error, log_into, open_log
