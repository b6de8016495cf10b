"""How many bytecodes a login takes in the core, by function: a count that no other work on the machine changes.

    python -m benchmarks.bytecodes [--functions N]

It is the `request` of `benchmarks.login_verification`, for tokens whose signatures have held before. It exits with 1
when there are more than `BOUND`. Every version of Python compiles to other bytecodes: the bound is for `VERSION`.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from types import CodeType, FrameType
from typing import Any, Final

from .fleet import raise_fleet
from .login_verification import request

MEMBERS: Final = 16
VERSION: Final = (3, 11)
BOUND: Final = 2975


def count() -> Counter[str]:
    """The bytecodes of a login by function."""
    log_in_all = request(raise_fleet(MEMBERS), is_warm=True).run
    log_in_all()  # caches are full, and what is loaded late is there
    codes: Counter[CodeType] = Counter()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        frame.f_trace_opcodes = True
        if event == "opcode":
            codes[frame.f_code] += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        log_in_all()
    finally:
        sys.settrace(before)
    names: Counter[str] = Counter()
    for code, times in codes.items():
        names[code.co_qualname] += times
    return Counter({name: round(times / MEMBERS) for name, times in names.items()})


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bytecodes", description=__doc__.split("\n")[0])
    parser.add_argument("--functions", type=int, default=20, help="how many functions are listed (20)")
    options = parser.parse_args()
    found = count()
    for name, times in found.most_common(options.functions):
        print(f"{times:6} {name}")
    print(f"{found.total():6} in all, at most {BOUND} with Python {'.'.join(map(str, VERSION))}")
    return int(sys.version_info[:2] == VERSION and found.total() > BOUND)


if __name__ == "__main__":
    sys.exit(main())
