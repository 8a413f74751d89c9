"""The paper's tables and figures as data: configurations, the paper's numbers, and ours.

A table and a figure are ours alone: ``ours``, our variant and its parts, and ``fig-ours``.

The way through it, as ``lgdgcn reproduce`` goes:

1. ``paper/*.toml`` has what the paper shows: rows, sweeps and its numbers. ``exhibits`` reads them
   into tables, curves and pictures, whose numbers are made of ``cells``: a configuration each,
   trained once per seed.
2. ``runs`` trains the cells that ``results`` does not have yet, on the ``graphs``, and stores them.
3. ``statistics`` has the means over the seeds and the t-tests; ``claims`` are decided with them by
   ``checks`` and ``figure_checks``; ``figures`` draws.
4. ``report`` puts all of it into ``blocks``, which ``templates/`` write as Markdown and HTML.
"""
