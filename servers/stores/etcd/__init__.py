"""The store on etcd: several nodes, each of them reading and writing, share one cluster, mostly of three members."""

from __future__ import annotations

from .address import Address
from .store import EtcdStore

__all__ = ["Address", "EtcdStore"]
