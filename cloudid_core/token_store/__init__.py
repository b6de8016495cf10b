"""The routes below auth/token."""
