"""One training without a run folder's ado."""

from lgdgcn.runs.fit import fit


def train_seed(data, settings, model, seed, device, run=None, **more):
    """Train one seed; returns its result and its model."""
    results, trained = fit(lambda _: data, settings, model, [seed], device, run, **more)
    return results[0], trained
