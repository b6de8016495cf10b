"""Servers: programs that run the core on a runtime, and a simulated cloud to run them against.

The package is `cloudid_servers` in a wheel and in a checkout, where a link of this name leads to the folder `servers`.
"""

if __name__ != "cloudid_servers":
    raise ImportError(f"the package is cloudid_servers, not {__name__}")
