"""The consistency loss, number by number."""


def sharpened(probability, temperature):
    powers = [p ** (1 / temperature) for p in probability]
    return [power / sum(powers) for power in powers]


def averages(views):
    """The mean of all views for every node."""
    return [
        [sum(one) / len(views) for one in zip(*nodes, strict=True)]
        for nodes in zip(*views, strict=True)
    ]


def consistency_loss(views, temperature, confidence=0.0, means=None):
    """Views are lists of nodes, which are lists of probabilities; means are theirs by default."""
    means = averages(views) if means is None else means
    counted = [i for i, mean in enumerate(means) if max(mean) > confidence]
    total = 0.0
    for i in counted:
        target = sharpened(means[i], temperature)
        for view in views:
            total += sum((p - t) ** 2 for p, t in zip(view[i], target, strict=True))
    return total / (len(counted) * len(views)) if counted else 0.0
