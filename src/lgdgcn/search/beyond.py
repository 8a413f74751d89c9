"""More settings than a portfolio has: Optuna searches on near the winner of the race."""

from collections.abc import Callable, Collection, Sequence

import optuna

from lgdgcn.config import AUTO, resolve
from lgdgcn.search.race import Candidate, Outcome
from lgdgcn.search.space import default_space
from lgdgcn.search.tuning import sampler

__all__ = ["search_on"]

_BATCH = 8  # trials that are asked for at once


def search_on(
    best: Candidate,
    raced: Callable[[Sequence[Candidate]], Outcome],
    count: int,
    *,
    multi_label: bool,
    fixed: Collection[str] = (),
    seed: int = 0,
) -> Outcome:
    """Race more settings of the model that has won, and return how they did.

    Trials have the settings of the winner where the model's search space does not name them.

    Args:
        best: The winner.
        raced: Races candidates, as those of the portfolio were.
        count: How many trials.
        multi_label: Whether nodes have sets of labels.
        fixed: Settings that stay as they are.
        seed: Of the sampler.
    """
    start = best.settings.as_dict()
    space = default_space(best.model, multi_label, best.settings.variant)
    fixed = {name for name in fixed if name in space.ranges}
    space = space.fixing({name: start[name] for name in fixed if start[name] != AUTO})
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=sampler(seed))
    study.enqueue_trial(space.inside(start))
    total = Outcome([], [], False)
    while len(total.standings) < count and not total.early:
        left = min(_BATCH, count - len(total.standings))
        trials = [study.ask(space.ranges) for _ in range(left)]
        batch = []
        for trial in trials:
            drawn = space.settings_of(trial.params).as_dict()
            kept = {name: value for name, value in start.items() if name not in trial.params}
            if "factors" in trial.params and "hidden_channels" not in trial.params:
                kept["hidden_channels"] = drawn["hidden_channels"]  # which the factors divide
            batch.append(Candidate(best.model, resolve(start, drawn, kept)))
        found = raced(batch)
        for trial, one in zip(trials, found.standings, strict=True):
            failed = one.score is None
            study.tell(trial, one.score, optuna.trial.TrialState.FAIL if failed else None)
        total = Outcome(total.standings + found.standings, total.last + found.last, found.early)
    return total
