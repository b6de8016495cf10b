"""Audit devices of a server, and the verifier of what they wrote (`python -m cloudid_servers.audit verify FILE`)."""
