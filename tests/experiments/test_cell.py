"""Cells are named by what they are."""

from dataclasses import replace

from experiments.tiny import cell


def test_the_key_is_what_the_result_depends_on():
    one = cell()
    assert cell(seeds=(5,), keeps_units=True).key == one.key
    assert cell(checkpoint_every=7).key == one.key
    others = [cell("disengcn"), cell(k=5), cell(split="random"), cell(graph="cora"), cell(tau=2.0)]
    assert len({one.key, *(other.key for other in others)}) == 6


def test_the_architecture_is_what_a_population_shares():
    one = cell()
    assert cell(lr=0.1, k=7, lambda_space=0.0, epochs=9).architecture == one.architecture
    assert cell(num_layers=2).architecture != one.architecture
    assert replace(one, split="random").architecture != one.architecture
