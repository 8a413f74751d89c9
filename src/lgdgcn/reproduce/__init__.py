"""The paper's tables and figures as data: configurations, the paper's numbers, and ours.

One table is ours alone: ``sharp``, the sharp variant and its parts.

The way through it, as ``lgdgcn reproduce`` goes:

1. What the paper shows: ``paper/*.toml`` (rows, sweeps, the paper's numbers), read by ``tables``
   and ``sweeps`` into the ``exhibits`` that ``catalogue`` names; ``plan`` says how much is trained.
2. Training: every number is a ``cell``; ``training`` trains what ``results`` does not have yet, on
   the ``graphs``, keeps a ``ledger`` of the work, and keeps the ``outcome``.
3. Figures: ``figures`` draws ``curve_figure`` and ``picture_figure`` (with ``layer_units``).
4. What holds: ``claims`` of the paper, checked by ``table_checks`` and ``figure_checks`` with the
   statistics of ``score``, ``contrast`` and ``finding``; ``reading`` sums up.
5. The report: ``report`` puts ``protocol``, ``exhibit_blocks``, ``statistics`` of the data and the
   ``configuration`` of every cell into a ``document``, written as ``markdown`` and ``html``.
"""
