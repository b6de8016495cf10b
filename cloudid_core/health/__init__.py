"""Health: the state of this node, and the problems that it can report."""

from .node import MOST_SKEW, SEVERAL, Node, NodeRecord
from .problems import HealthProblem, Occurrence
