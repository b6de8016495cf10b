"""The routes below `sys`: the state of the service, policies, mounts, leases."""
