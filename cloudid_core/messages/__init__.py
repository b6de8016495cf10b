"""Requests and responses as they travel."""
