"""A living simulated cloud: identity provider, resource manager, directory, and machines with metadata services.

It stands alone: `Simulator` answers requests in-process, `start` serves one over HTTP, and
`python -m servers.provider_simulator` does so until it is told to stop. `control` documents how to change the world.
"""

from .http import Running, start
from .routing import Answer
from .simulator import Simulator

__all__ = ["Answer", "Running", "Simulator", "start"]
