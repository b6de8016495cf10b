"""The store on etcd: several nodes, each of them reading and writing, share one cluster, mostly of three members.

address   where the members are: an `etcd://` address without a password
client    asks one member after the other, over etcd's JSON gateway, on trio and on asyncio
store     the `Store`: groups, outcomes, coalesced reads
"""

from __future__ import annotations

from .address import Address
from .store import EtcdStore
