"""What this node knows of itself, and what health can say is wrong."""

from .node import MOST_SKEW, SEVERAL, Node, NodeRecord
from .problems import HealthProblem, Occurrence
