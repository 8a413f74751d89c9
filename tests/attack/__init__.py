"""The attack: hostile graphs, damaged runs, kills and signals, each judged by an oracle.

``make attack ARGS="--cases 20000 --kills 300"`` runs it and prints a table; ``make test`` runs a
short pass. Every case is a function of a seed, so a failure can be repeated alone.

=================  ==============================================================
``verdict``        what a case can come to
``parts``          the parts of the attack, each in a guarded process
``rules``          what a user has to know about files: the law that the oracle judges by
``graphs``         random graphs with hostile names
``dialects``       the many valid ways to write one down; ``text_files`` for csv and tsv
``damage``         damage to such files
``literal``        a slow, plain reader of the same files: the second opinion
``folders``        write, read back, compare; damage, read, compare
``base_runs``      sound runs and the right answers to them
``run_damage``     damage to run folders and model files
``runs``           a command on a damaged run
``children``       commands in forks of this process
``sabotage``       what happens inside one: a kill or a signal at the n-th call, a full disk
``kills``          trainings killed again and again, compared bit by bit
``signals``        Ctrl-C, SIGTERM, a closed pipe, a full disk, during every verb
``stand_ins``      what is slow and not attacked; ``warm`` uses everything once
=================  ==============================================================
"""
