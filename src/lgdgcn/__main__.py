"""``python -m lgdgcn``."""

from lgdgcn.cli import main

main()
