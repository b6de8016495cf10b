"""What the operating system knows of this process."""

from __future__ import annotations

from cloudid_core.metrics import BY_NAME, Numbers, put


def process_numbers() -> Numbers:
    """CPU, memory, descriptors and start of the process; nothing where the system does not tell (Linux does)."""
    from prometheus_client import ProcessCollector  # a start without a scrape does not wait for it

    numbers = Numbers()
    for family in ProcessCollector(registry=None).collect():
        for sample in family.samples:
            if sample.name in BY_NAME:
                put(numbers, sample.name, sample.value)
    return numbers
