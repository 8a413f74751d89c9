"""What the paper claims of its tables and figures, and how each claim is checked."""

from dataclasses import dataclass

from lgdgcn.experiments.figure_checks import (
    best_around,
    more_in_blocks,
    rises_then_falls,
    stable_then_falls,
)
from lgdgcn.experiments.finding import Check
from lgdgcn.experiments.table_checks import beats, finds_factors, lead_shrinks, reaches, routes

__all__ = ["CLAIMS", "Claim"]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, or one it rests on, and its check.

    Attributes:
        exhibit: Name of the table or figure whose numbers decide.
        text: The claim.
        where: Where in the paper, or that it is ours.
        check: What decides.
    """

    exhibit: str
    text: str
    where: str
    check: Check


STANDARD, RANDOM = "Standard split", "Random splits"
PUBLISHED, GENERATED = "Micro-F1, published graphs", "Micro-F1, our generator"
OTHERS = ("MLP", "MoNet", "GCN", "GAT", "APPNP", "GCNII", "DisenGCN")
DEGREE, FACTORS = "{} neighbours", "{} factors"
FIRST_LAYER, SECOND_LAYER = "LGD-GCN (1st layer)", "LGD-GCN (2nd layer)"

CLAIMS = [
    Claim("table1", "DisenGCN beats GCN at every neighbourhood size (Micro-F1).",
          "Table 1", beats("Micro-F1", "DisenGCN", "GCN", case=DEGREE)),
    Claim("table1", "Its lead shrinks with the neighbourhood, from about 5 points to 1.",
          "Table 1", lead_shrinks("Micro-F1", "DisenGCN", "GCN", "40", "6")),
    Claim("table1", "LGD-GCN makes up for what DisenGCN lacks on sparse graphs.",
          "argued in “Limitations of DisenGCN”, measured here",
          beats("Micro-F1", "LGD-GCN", "DisenGCN", columns=("10", "6"), case=DEGREE)),
    Claim("table2", "LGD-GCN beats DisenGCN on the standard split.",
          "Table 2", beats(STANDARD, "LGD-GCN", "DisenGCN")),
    Claim("table2", "LGD-GCN beats DisenGCN on random splits.",
          "Table 2", beats(RANDOM, "LGD-GCN", "DisenGCN")),
    Claim("table2", "LGD-GCN is the best of all on the standard split, APPNP and GCNII included.",
          "Table 2; APPNP and GCNII are ours", beats(STANDARD, "LGD-GCN", *OTHERS)),
    Claim("table2", "LGD-GCN is the best of all on random splits, APPNP and GCNII included.",
          "Table 2; APPNP and GCNII are ours", beats(RANDOM, "LGD-GCN", *OTHERS)),
    Claim("table2", "LGD-GCN reaches the accuracy printed for the standard split.",
          "Table 2", reaches(STANDARD, "LGD-GCN")),
    Claim("table2", "LGD-GCN reaches the accuracy printed for random splits.",
          "Table 2", reaches(RANDOM, "LGD-GCN")),
    Claim("table2", "DisenGCN reaches the accuracy quoted for the standard split.",
          "Table 2, quoted there from other work", reaches(STANDARD, "DisenGCN")),
    Claim("table3", "LGD-GCN beats DisenGCN for every number of factors (published graphs).",
          "Table 3", beats(PUBLISHED, "LGD-GCN", "DisenGCN", case=FACTORS)),
    Claim("table3", "LGD-GCN beats DisenGCN for every number of factors (our generator).",
          "Table 3", beats(GENERATED, "LGD-GCN", "DisenGCN", case=FACTORS)),
    Claim("table3", "DisenGCN beats GCN and MLP for every number of factors.",
          "Table 3", beats(PUBLISHED, "DisenGCN", "GCN", "MLP", case=FACTORS)),
    Claim("table3", "LGD-GCN reaches the Micro-F1 printed, taking the m highest-scoring labels.",
          "Table 3", reaches(PUBLISHED, "LGD-GCN", case=FACTORS)),
    Claim("table3", "LGD-GCN reaches the Micro-F1 printed, taking labels above 0.5.",
          "Table 3", reaches("Micro-F1 at 0.5, published graphs", "LGD-GCN", case=FACTORS)),
    Claim("table3", "LGD-GCN gives edges to the factors that made them.",
          "the premise of disentangling, measured here",
          finds_factors(PUBLISHED, "LGD-GCN", case=FACTORS)),
    Claim("table4", "The space loss helps.", "Table 4", beats(STANDARD, "space", "none")),
    Claim("table4", "The diversity loss helps, without latent graphs.",
          "Table 4", beats(STANDARD, "space + diversity", "space")),
    Claim("table4", "The diversity loss helps, with latent graphs.",
          "Table 4, except on Pubmed", beats(STANDARD, "all", "space + latent graphs")),
    Claim("table4", "Latent graphs help, without the diversity loss.",
          "Table 4", beats(STANDARD, "space + latent graphs", "space")),
    Claim("table4", "Latent graphs help, with the diversity loss.",
          "Table 4", beats(STANDARD, "all", "space + diversity")),
    Claim("table4", "All parts together beat none of them.",
          "Table 4", beats(STANDARD, "all", "none")),
    Claim("table4", "Routing matters: uniform routing does worse.",
          "the premise of disentangling, measured here",
          beats(STANDARD, "all", "all, uniform routing")),
    Claim("table4", "Routing happens: edges are given to some factors rather than to all alike.",
          "the premise of disentangling, measured here", routes(STANDARD, "all")),
    Claim("table4", "Latent graphs matter at test time, not only in training.",
          "implied by the model, measured here",
          beats(STANDARD, "all", "all, latent graphs off at test time")),
    Claim("fig-correlation", "Features of LGD-GCN are more block-wise than those of DisenGCN.",
          "figure of the features' correlation",
          more_in_blocks(FIRST_LAYER, "DisenGCN (1st layer)")),
    Claim("fig-correlation", "Blocks are denser in the second layer than in the first.",
          "figure of the features' correlation", more_in_blocks(SECOND_LAYER, FIRST_LAYER)),
    Claim("fig-correlation", "Latent graphs make the blocks stronger.",
          "figure of the features' correlation",
          more_in_blocks(SECOND_LAYER, "LGD-GCN without latent graphs (2nd layer)")),
    Claim("fig-lambda", "Accuracy on Cora goes up with λ_space first, then drops.",
          "figure of λ_space", rises_then_falls("λ_space on Cora")),
    Claim("fig-lambda", "Accuracy on Citeseer goes up with λ_space first, then drops.",
          "figure of λ_space, shown only", rises_then_falls("λ_space on Citeseer")),
    Claim("fig-lambda", "λ_div on Citeseer is robust up to 0.1; beyond it accuracy drops.",
          "figure of λ_div", stable_then_falls("λ_div on Citeseer", 0.1)),
    Claim("fig-k", "Accuracy on Cora is stable for k up to 8, then deteriorates.",
          "figure of k", stable_then_falls("k on Cora", 8)),
    Claim("fig-k", "Accuracy on Citeseer is stable for k up to 10, then deteriorates.",
          "figure of k", stable_then_falls("k on Citeseer", 10)),
    Claim("fig-factors", "The best number of channels is around eight, the true one.",
          "figure of M", best_around("M on the graph with eight", 6, 10)),
]  # fmt: skip
