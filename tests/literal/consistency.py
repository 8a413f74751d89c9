"""The consistency loss, number by number."""


def sharpened(probability, temperature):
    powers = [p ** (1 / temperature) for p in probability]
    return [power / sum(powers) for power in powers]


def consistency_loss(views, temperature):
    """Views are lists of nodes, which are lists of probabilities."""
    total, nodes = 0.0, len(views[0])
    for i in range(nodes):
        classes = len(views[0][i])
        mean = [sum(view[i][c] for view in views) / len(views) for c in range(classes)]
        target = sharpened(mean, temperature)
        for view in views:
            total += sum((view[i][c] - target[c]) ** 2 for c in range(classes))
    return total / (nodes * len(views))
