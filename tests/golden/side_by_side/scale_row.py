"""Measure one row of ``lgdgcn bench --scale`` of a tree that has it, given as JSON."""

import json
import sys
import warnings

from lgdgcn.commands.scale_worker import measure

from lgdgcn.errors import InputError

warnings.simplefilter("ignore")
try:
    found = measure(**json.loads(sys.argv[1]))
except InputError as error:
    found = {"left_out": str(error)}
sys.stdout.write(f"\n{json.dumps(found)}\n")
