"""Change the product as the environment says: for servers and commands that tests start while a mutant is tried."""

from __future__ import annotations

import os

from tests.mutants.mistakes import MISTAKE, Mutant
from tests.mutants.reach import MARKS, Marks

if mistake := os.environ.get(MISTAKE):
    Mutant.of(mistake).take_effect()
if file := os.environ.get(MARKS):
    Marks(file).take_effect()
