"""Fresh random seeds for every run of the tests, the same in all of its worker processes."""

import os
import random


def seeds(count):
    source = random.Random(os.environ.get("PYTEST_XDIST_TESTRUNUID"))
    return [source.randrange(2**31) for _ in range(count)]
