"""How a simulated cloud works: requests and routes, replicas that lag, throttling, faults on purpose, the ledger.

Nothing here knows what the cloud consists of; `world` does.
"""
