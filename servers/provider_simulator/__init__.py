"""A simulated cloud that keeps state: identity provider, resource manager, directory, machines with metadata services.

`Simulator` answers requests in-process and `start` serves one over HTTP. `python -m cloudid_servers.provider_simulator`
serves one until a signal stops it. `docs/reference/simulator.md` has the API that changes the world.

    engine/     how it works: requests and routes, replicas that lag, throttling, faults, the ledger
    world/      what it consists of
    identity/   login: discovery, keys, the token endpoint; the metadata services
    arm/        the resource manager
    graph/      the directory's API
"""

from .certificate import make_context
from .engine.requests import Answer
from .server import Running, start
from .simulator import Simulator
from .world.objects import APP_ROLES
