"""Which trials to give up: the lower third at every rung."""

from statistics import quantiles

import optuna

__all__ = ["LowerThird"]

_ENOUGH = 9  # scores at a rung before any trial is judged by them


class LowerThird(optuna.pruners.BasePruner):
    """Prunes a trial that is in the lower third of all that have come as far.

    Optuna's own pruners compare with trials that are complete, or by who came first; here a batch
    of trials comes to a rung together.
    """

    def prune(self, study: "optuna.Study", trial: "optuna.trial.FrozenTrial") -> bool:
        """Whether the trial's last reported score is in the lower third."""
        step = trial.last_step
        if step is None:
            return False
        trials = study.get_trials(deepcopy=False)
        scores = [t.intermediate_values[step] for t in trials if step in t.intermediate_values]
        if len(scores) < _ENOUGH:
            return False
        return bool(trial.intermediate_values[step] < quantiles(scores, n=3)[0])
