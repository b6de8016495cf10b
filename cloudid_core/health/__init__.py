"""What this node knows of itself, and what health can say is wrong."""

from .node import MOST_SKEW, SEVERAL, Node, NodeRecord
from .problems import HealthProblem, Occurrence

__all__ = ["MOST_SKEW", "SEVERAL", "HealthProblem", "Node", "NodeRecord", "Occurrence"]
