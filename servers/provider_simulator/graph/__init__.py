"""The directory's API: applications, service principals, groups and deleted items, below `/graph/v1.0`."""
