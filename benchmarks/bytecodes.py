"""How many bytecodes a login takes in the core, by function: a count that no other work on the machine changes.

    python -m benchmarks.bytecodes [--functions N]

It is the `request` of `benchmarks.login_verification`, counted twice: warm, for tokens whose signatures were verified
before, and cold, for tokens that the service sees for the first time. All other caches are full in both. It exits with
1 when a login takes more than its row of `BOUNDS`. Every version of Python compiles to other bytecodes: the bounds are
for `VERSION`.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from types import CodeType, FrameType
from typing import Any, Final

from .fleet import raise_fleet
from .login_verification import request

MEMBERS: Final = 16
VERSION: Final = (3, 11)
WARM: Final = "warm"
COLD: Final = "cold"
BOUNDS: Final[Mapping[str, int]] = {WARM: 3028, COLD: 3493}


def count(kind: str) -> Counter[str]:
    """Count the bytecodes of a warm or a cold login by function."""
    contender = request(raise_fleet(MEMBERS), is_warm=kind == WARM)
    log_in_all = contender.run
    log_in_all()  # caches are full, and what is loaded late is there
    if kind == COLD:
        contender.prepare()  # forgets the verified signatures
    codes: Counter[CodeType] = Counter()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        frame.f_trace_opcodes = True
        if event == "opcode":
            codes[frame.f_code] += 1
        return trace

    traced(log_in_all, trace)
    names: Counter[str] = Counter()
    for code, times in codes.items():
        names[code.co_qualname] += times
    return Counter({name: round(times / MEMBERS) for name, times in names.items()})


def traced(work: Callable[[], object], trace: Callable[[FrameType, str, Any], Any]) -> None:
    """Run some work under a trace function of `sys.settrace`, and restore the one before.

    It is not a context manager, because the code that leaves one would be traced too.
    """
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bytecodes", description=__doc__.split("\n")[0])
    parser.add_argument("--functions", type=int, default=20, help="how many functions are listed (20)")
    options = parser.parse_args()
    counts = {kind: count(kind) for kind in BOUNDS}
    for kind, bound in BOUNDS.items():
        print(f"{kind} login")
        for name, times in counts[kind].most_common(options.functions):
            print(f"{times:6} {name}")
        print(f"{counts[kind].total():6} in all, at most {bound} with Python {'.'.join(map(str, VERSION))}")
    is_over = any(counts[kind].total() > bound for kind, bound in BOUNDS.items())
    return int(sys.version_info[:2] == VERSION and is_over)


if __name__ == "__main__":
    sys.exit(main())
