"""The resource manager: subscriptions, resources, role definitions and role assignments, below `/arm`."""
