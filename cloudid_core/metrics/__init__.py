"""Metrics: what is counted and measured, by one table. Numbers only: whoever asks for them chooses their form."""

from .numbers import HISTOGRAM_TAIL, Numbers, Series, add, merged, observe, put
from .table import BY_NAME, METRICS, Kind, Merge, Metric, Source
from .tally import Tally
