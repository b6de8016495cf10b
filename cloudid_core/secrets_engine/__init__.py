"""The secrets engine: service principals on request, under a lease."""
