"""Audit devices of a server, and the verifier of what they wrote (`python -m servers.audit verify FILE`)."""
