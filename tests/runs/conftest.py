"""What tests of runs need of the command line, and of training."""

from cli.conftest import mine, quick_map, server  # noqa: F401
from train.conftest import general_position  # noqa: F401
