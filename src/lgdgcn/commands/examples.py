"""What ``--help`` shows at the end of each verb."""

__all__ = [
    "EXPLAIN",
    "EXPLORE",
    "MEASURE",
    "PACK",
    "PREDICT",
    "REPRODUCE",
    "START",
    "TRAIN",
    "TUNE",
]

START = """
With a graph of your own, a folder with edges.csv and nodes.csv:

  lgdgcn data check my-graph/

  lgdgcn train my-graph/ --out runs/mine

  lgdgcn predict runs/mine --proba

  lgdgcn explore runs/mine --open
"""

TRAIN = """
Examples:

  lgdgcn train my-graph/ --id key --label genre --ignore notes

  lgdgcn train my-graph/ --budget 5m --metric macro_f1 --seeds 5

  lgdgcn train my-graph/ --factors 3 --epochs 500 --set dropout=0.3

  lgdgcn train synthetic --compare gcn,disengcn,lgdgcn-paper

  lgdgcn train cora --variant released --seeds 10

  lgdgcn train cora --out runs/cora --resume

  lgdgcn train my-graph/ --task edges --out runs/reasons
"""

PREDICT = """
Examples:

  lgdgcn predict runs/cora-lgdgcn --proba

  lgdgcn predict runs/mine --graph new-graph/ --edges --out predictions.csv

  lgdgcn predict runs/reasons --edges
"""

MEASURE = """
Examples:

  lgdgcn measure runs/cora-lgdgcn

  lgdgcn measure runs/mine --out mine.json
"""

EXPLAIN = """
Examples:

  lgdgcn explain runs/cora-lgdgcn

  lgdgcn explain runs/cora-lgdgcn --node 42

  lgdgcn explain runs/mine --edge alice bob --json
"""

EXPLORE = """
Examples:

  lgdgcn explore runs/cora-lgdgcn --open

  lgdgcn explore runs/mine --out mine.html

  lgdgcn explore runs/mine --node alice --hops 2
"""

TUNE = """
Examples:

  lgdgcn tune cora --variant released --trials 200

  lgdgcn tune my-graph/ --set factors=3

  lgdgcn tune my-graph/ --model gcn --trials 50 --space my-space.toml

  lgdgcn tune cora --storage postgresql://user@host/studies --resume
"""

REPRODUCE = """
Examples:

  lgdgcn reproduce --quick

  lgdgcn reproduce table2 fig-k --device cuda --out runs/paper
"""

PACK = """
Examples:

  lgdgcn data pack my-graph/ --out my-graph.lgd

  lgdgcn data pack my-graph/ --out my-graph.lgd --memory 1GB --label genre

  lgdgcn data pack new-graph/ --out new-graph.lgd --like runs/my-graph-lgdgcn
"""
