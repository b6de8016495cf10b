"""Mounts: which component answers below which path, what can be mounted, and how a mount ends."""
