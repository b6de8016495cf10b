"""The Azure permissions that each feature needs, and which of them a mount's credential has."""

from .check import permissions_route
