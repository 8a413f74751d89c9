"""One promise, one test: what each bad input and each fault gets, by its number.

``pytest tests -k fault_24`` runs the tests of fault 24. Their docstrings say the promise and, after
"In part:", what is not kept. Faults of runs, studies and ranks are tested beside these:
``runs/test_interrupted.py``, ``search/test_verb.py`` and ``train/test_ranks.py``.
"""
