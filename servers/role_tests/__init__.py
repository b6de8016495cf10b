"""Tests of roles: cases of logins with the verdict that is expected of each, against roles of a file or of a server."""
