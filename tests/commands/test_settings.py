import dataclasses

from commands.runner import call, rows
from lgdgcn.config import Settings


def test_every_setting_is_listed():
    outcome = call("settings")
    assert outcome.code == 0
    keys = [line.split()[0] for line in outcome.out.splitlines() if line.strip()]
    assert {field.name for field in dataclasses.fields(Settings)} <= set(keys)
    assert "knn, cknn" in outcome.out
    assert rows(outcome.out)["variant"][0] == "sharp"  # as train has it
