"""The attack: hostile graphs, damaged runs, kills and signals, each judged by an oracle.

``make attack ARGS="--cases 20000 --kills 300"`` runs it and prints a table; ``make test`` runs a
short pass. Every case is a function of a seed, so a failure can be repeated alone.

==============  =================================================================
``verdict``     what a case can come to
``rules``       the few rules of reading that a user has to know; the oracle's law
``graphs``      random graphs with hostile names
``dialects``    the many valid ways to write such a graph down
``literal``     a slow, plain reader of the same files: the second opinion
``folders``     write, read back, compare; damage, read, compare
``runs``        damaged run folders and model files
``sabotage``    what happens inside a child: a kill or a signal at the n-th call
``kills``       trainings killed again and again, compared bit by bit
``signals``     Ctrl-C, SIGTERM, a closed pipe, a full disk, during every verb
==============  =================================================================
"""
