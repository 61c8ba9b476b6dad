"""Campaign files and plans."""

from pathlib import Path

import pytest

from foresail.campaigns.plan import CampaignPlan, LogSource, log_name, policies_of, read_plan
from foresail.control.policy import parse_policy
from foresail.model.errors import InputError, UnknownNameError


def _write(folder: Path, text: str) -> Path:
    path = folder / "campaign.toml"
    path.write_text(text)
    return path


def test_a_whole_file(tmp_path):
    """Logs as paths or tables, counted from the file; policies in canonical form, each once."""
    plan = read_plan(
        _write(
            tmp_path,
            """
            logs = ["a.swf.gz", {path = "sub/b.swf", name = "B", processors = 64, reader = "swf"}]
            policies = ["easy( order = shortest )", "easy-sjbf", "easy++"]
            conventions = "predictsim"
            filters = ["predictsim"]
            enforce_limits = true
            """,
        )
    )
    assert plan == CampaignPlan(
        (
            LogSource("a", tmp_path / "a.swf.gz"),
            LogSource("B", tmp_path / "sub/b.swf", "swf", 64),
        ),
        ("easy(order=shortest)", parse_policy("easy++").text),
        "predictsim",
        ("predictsim",),
        True,
    )


def test_triples_come_behind(tmp_path):
    """``triples = true`` adds 130 policies, EASY++ among them; conventions change none of these."""
    text = 'logs = ["a.swf"]\npolicies = ["fcfs"]\ntriples = true\n'
    ours = read_plan(_write(tmp_path, text))
    assert len(ours.policies) == 131
    assert ours.policies[0] == "fcfs"
    study = read_plan(_write(tmp_path, text + 'conventions = "predictsim"\n'))
    assert study.policies == ours.policies
    assert parse_policy("easy++").text in ours.policies


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("logs = [", "not TOML"),
        ("policies = ['easy']", "logs"),
        ("logs = []\ntriples = true", "logs"),
        ("logs = ['a']\ntripels = true", "tripels"),
        ("logs = [{path = 'a', processors = 0}]\ntriples = true", "processors"),
        ("logs = ['a']", "no policies"),
        ("logs = ['a.swf', 'b/a.swf.gz']\ntriples = true", "same name"),
        ("logs = ['a']\npolicies = ['easy(']", "parentheses"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, problem):
    """A file that cannot be used says what is wrong in it."""
    with pytest.raises(InputError, match=problem):
        read_plan(_write(tmp_path, text))


def test_unknown_names(tmp_path):
    """Unknown conventions and policies are answered with known ones; a missing file is an error."""
    with pytest.raises(InputError, match="predictsim"):
        read_plan(_write(tmp_path, "logs = ['a']\ntriples = true\nconventions = 'predictsin'"))
    with pytest.raises(UnknownNameError, match="easy"):
        policies_of(["eazy"], triples=False)
    with pytest.raises(InputError, match="cannot be read"):
        read_plan(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("KTH-SP2.filtered.swf.gz", "KTH-SP2"),
        ("SDSC-BLUE-2000-4.2-cln.swf.gz", "SDSC-BLUE-2000-4.2-cln"),
        ("folder/mine", "mine"),
    ],
)
def test_log_names(path, name):
    """Suffixes go, version numbers stay."""
    assert log_name(Path(path)) == name
