"""The measures by name: what each is called, which way is better, what it says."""

import math
from dataclasses import dataclass
from typing import Literal

__all__ = ["HEADLINE", "MEASURES", "Better", "Measure"]

Better = Literal["higher", "lower", "none"]


@dataclass(frozen=True)
class Measure:
    """How a measure is shown."""

    title: str
    better: Better
    about: str
    low: float = 0.0
    high: float = 1.0

    @property
    def is_share(self) -> bool:
        """Whether it can be written in per cent."""
        return self.high == 1


MEASURES = {
    "edge_attribution": Measure(
        "Edge attribution", "higher",
        "Share of edges made by one factor whose strongest channel is that factor's, channels "
        "matched to factors as well as possible.",
    ),
    "routing_entropy": Measure(
        "Routing entropy", "lower",
        "Entropy of the edges' channel probabilities as a share of its maximum: near 1 nothing is "
        "routed.",
    ),
    "factor_usage": Measure(
        "Factors in use", "none",
        "How many factors all edges together go to, from 1 to M: the exponential of the entropy "
        "of their mean probabilities.",
        low=1.0, high=math.inf,
    ),
    "dci_disentanglement": Measure(
        "DCI disentanglement", "higher",
        "Whether each unit tells of one factor only, by linear probes on held-out nodes.",
    ),
    "dci_completeness": Measure(
        "DCI completeness", "higher",
        "Whether one unit alone says each factor, by linear probes on held-out nodes.",
    ),
    "dci_informativeness": Measure(
        "DCI informativeness", "higher",
        "Accuracy of a linear probe of all units on held-out nodes, mean over the factors (of the "
        "class where no factors are known).",
    ),
    "leakage": Measure(
        "Probe leakage", "lower",
        "How well a factor is predicted from the units that are not its own: 0 is the majority "
        "rate, 1 always right.",
    ),
    "mig": Measure(
        "Block MIG", "higher",
        "Gap between the two units that tell most of a factor, as a share of the factor's entropy.",
    ),
    "correlation_ratio": Measure(
        "Correlation ratio", "higher",
        "Mean absolute correlation of two channels of one unit over that of two units: 1 shows no "
        "blocks.",
        high=math.inf,
    ),
    "cka": Measure(
        "CKA between units", "lower",
        "Dependence of two units by Gaussian kernels (HSIC as a share of its maximum), mean over "
        "the pairs of units.",
    ),
    "distance_correlation": Measure(
        "Distance correlation", "lower",
        "Dependence of two units by distances, bias-corrected, mean over the pairs of units.",
    ),
    "determinant_diversity": Measure(
        "Determinant diversity", "higher",
        "Volume spanned by the likelihoods of a node's units under all channels' Gaussians (Eq. "
        "5), mean over the nodes.",
    ),
}  # fmt: skip

# What training, reproduction and tuning report
HEADLINE = (
    "edge_attribution",
    "routing_entropy",
    "factor_usage",
    "dci_disentanglement",
    "correlation_ratio",
)
