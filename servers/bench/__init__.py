"""Benchmarks of the verification of logins, for `cloudid bench` and for `benchmarks/` of the repository."""

from .against import ask_for
from .contenders import Contender, pyjwt, raw_rsa, verification
from .machine import available_cpus, environment, environment_text, fsync_us, tell
from .measuring import Figure, measure, measure_processes
from .picture import draw
from .subject import Subject, own, synthetic
