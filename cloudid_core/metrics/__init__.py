"""Metrics: a table of everything that is counted and measured.

There are only numbers here; callers choose the format.
"""

from .numbers import HISTOGRAM_TAIL, Numbers, Series, add, merged, observe, put
from .table import BY_NAME, METRICS, Kind, Merge, Metric, Source
from .tally import Tally
