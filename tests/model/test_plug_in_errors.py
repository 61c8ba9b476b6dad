"""Mistakes of plug-ins are told in a sentence, with file and line."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from foresail.cli.cloud import app as cloud
from foresail.cli.main import app_of
from foresail.model.errors import InputError
from foresail.model.registry import blaming_plug_ins

simulate = app_of("simulate")

LOG = "; MaxProcs: 4\n1 0 -1 100 2 -1 -1 2 200 -1 1 1 1 -1 1 -1 -1 -1\n"

HEAD = """\
from foresail.distributions.basic import Point
from foresail.model.protocols import Predictor
from foresail.model.registry import register

@register("{family}", "{name}")
class Plug(Predictor):
    \"\"\"Has a mistake.\"\"\"

    def __init__(self, parameters):
        pass

"""
PREDICTOR = """\
    def predict(self, job, now):
        {mistake}
        return Point(1.0)

    def observe(self, job, outcome):
        pass
"""
CORRECTION = """\
    def correct(self, job, prediction, initial, current, count):
        {mistake}
"""
SHORT = """
@register("predictor", "short-{name}")
class Short(Plug):
    \"\"\"A second.\"\"\"

    def predict(self, job, now):
        return Point(1.0)

    def observe(self, job, outcome):
        pass
"""
READER = """\
    def recognises(self, sample):
        return False

    def chunks(self, notes):
        {mistake}
"""
FILTER = """\
    def __call__(self, workload):
        {mistake}
"""
PRICES = """\
    def recognises(self, reference):
        return False

    def catalogue(self, reference):
        {mistake}
"""
KINDS = {
    "predictor": (PREDICTOR, ["--with", "easy,{name}"], "predictor"),
    "correction": (CORRECTION + SHORT, ["--with", "easy,short-{name},{name}"], "plug-in"),
    "reader": (READER, ["--reader", "{name}"], "reader"),
    "filter": (FILTER, ["--filter", "{name}"], "filter"),
    "price_source": (PRICES, ["--prices", "{name}:file"], "price source"),
}


def written(folder, family, mistake):
    """A plug-in that makes a mistake, and what to call it with."""
    body, options, _ = KINDS[family]
    name = f"has-a-mistake-{family}-{len(mistake)}"
    plug_in = folder / f"{family}_{len(mistake)}.py"
    plug_in.write_text((HEAD + body).format(family=family, name=name, mistake=mistake))
    (folder / "log.swf").write_text(LOG)
    (folder / "file").write_text("a price")
    command = [folder / "log.swf", "--plugin", plug_in]
    command += [each.format(name=name).replace("file", str(folder / "file")) for each in options]
    return plug_in, [*map(str, command)]


def call(folder, family, mistake):
    """What is said of a plug-in that makes a mistake, and its file."""
    plug_in, command = written(folder, family, mistake)
    app = cloud if family == "price_source" else simulate
    before = ["buy"] if family == "price_source" else []
    with pytest.raises(InputError) as raised, blaming_plug_ins():
        raise CliRunner().invoke(app, [*before, *command]).exception
    return str(raised.value), plug_in


@pytest.mark.parametrize("family", KINDS)
def test_a_mistake_in_the_file(tmp_path, family):
    """The line that raised is named."""
    said, plug_in = call(tmp_path, family, "raise KeyError('of mine')")
    number = 1 + plug_in.read_text().splitlines().index("        raise KeyError('of mine')")
    assert said == f"{plug_in}, line {number}: the {KINDS[family][2]} fails: KeyError: 'of mine'"


@pytest.mark.parametrize("answer", ["None", "600", "[1.0]"])
def test_an_answer_that_is_no_distribution(tmp_path, answer):
    """The method that gave it is named with its line, under a policy and in an evaluation."""
    said, plug_in = call(tmp_path, "predictor", f"return {answer}")
    number = 1 + plug_in.read_text().splitlines().index("    def predict(self, job, now):")
    assert said.startswith(f"{plug_in}, line {number}, field 'predict': the predictor Plug of ")
    assert f" predicts {answer} for job 1; expected a distribution" in said
    command = ["evaluate", tmp_path / "log.swf", "--plugin", plug_in, "--predictor"]
    words = [*map(str, command), f"has-a-mistake-predictor-{len(answer) + 7}"]
    found = CliRunner().invoke(app_of("predict"), words).exception
    assert str(found) == said


@pytest.mark.parametrize(
    ("right", "wrong", "line", "says"),
    [
        ("def predict(", "def forgotten(", '@register("pr', ": Plug lacks the method predict"),
        ("def observe(", "def forgotten(", '@register("pr', ": Plug lacks the method observe"),
        ("job, now)", "job)", "    def predict(", ": TypeError: Plug.predict() takes 2 pos"),
        ("(Predictor)", "", '@register("pr', ", field 'Plug': has-a-mistake-predictor-4 is no "),
    ],
)
def test_a_class_that_is_not_whole(tmp_path, right, wrong, line, says):
    """The method is named with its line where it is there, else the class with its own."""
    plug_in, command = written(tmp_path, "predictor", "pass")
    plug_in.write_text(plug_in.read_text().replace(right, wrong))
    with pytest.raises(InputError) as raised, blaming_plug_ins():
        raise CliRunner().invoke(simulate, command).exception
    lines = plug_in.read_text().splitlines()
    number = 1 + next(at for at, text in enumerate(lines) if text.startswith(line))
    assert str(raised.value).startswith(f"{plug_in}, line {number}{says}")


@pytest.mark.parametrize("family", sorted({*KINDS} - {"predictor"}))
def test_an_answer_of_no_use(tmp_path, family):
    """What returns nothing raises nothing itself: it is named, with the line where it begins."""
    said, plug_in = call(tmp_path, family, "return None")
    number = 1 + plug_in.read_text().splitlines().index("class Plug(Predictor):")
    assert f"{plug_in}, line {number - 1}: Plug" in said
    assert " returns what cannot be used: " in said
    assert ("Short" in said) == (family == "correction")  # which of the two is not known


def test_a_mistake_that_ends_a_loop(tmp_path):
    """What Python turns into another error where it is caught is told with its own line."""
    said, plug_in = call(tmp_path, "predictor", "raise StopIteration")
    number = 1 + plug_in.read_text().splitlines().index("        raise StopIteration")
    assert f"{plug_in}, line {number}: the predictor fails: " in said


@pytest.mark.parametrize("family", ["predictor", "correction"])
@pytest.mark.parametrize("mean", ["nan", "-5"])
def test_an_answer_that_is_no_time(tmp_path, family, mean):
    """It is refused."""
    answer = f"float('{mean}')"
    answer = f"return Point({answer})" if family == "predictor" else f"return {answer}"
    said, plug_in = call(tmp_path, family, answer)
    assert (
        f"the {family} Plug of {plug_in.name} expects no usable time of job 1 (found {mean}" in said
    )


def test_the_command_ends_with_a_sentence(tmp_path):
    """Exit status 2, and nothing of a traceback; a plug-in that leaves Python is one that fails."""
    plug_in, arguments = written(tmp_path, "predictor", "raise SystemExit(0)")
    command = [sys.executable, "-c", "from foresail.cli.main import main; main()", "simulate"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert [*filter(None, done.stderr.splitlines())][-1].startswith(f"foresail: {plug_in}, line ")
    assert "Traceback" not in done.stderr


def test_our_own_mistakes_stay_ours():
    """An error in which no plug-in had part is not turned into a sentence about one."""
    with pytest.raises(ZeroDivisionError), blaming_plug_ins():
        1 / 0  # noqa: B018


THEIRS = '''\
from foresail.model.decision import Decision
from foresail.model.protocols import Scheduler
from foresail.model.registry import register

@register("scheduler", "theirs")
class Theirs(Scheduler):
    """Has a mistake."""

    def __init__(self, parameters):
        pass

    def decide(self, view):
        return Decision()
'''
MODULES = "[foresail.scheduler]\nthem = them.policies\n"
ENTRY = "[foresail.plugins]\nthem = them.policies.mine"


@pytest.mark.parametrize(
    ("right", "wrong", "entry", "says"),
    [
        ("Decision()", "view.gone", MODULES, "mine.py, line 13: the scheduler fails: Attri"),
        ("def decide", "def forgotten", MODULES, "mine.py, line 5: Theirs lacks the method dec"),
        ("pass", "gone", MODULES, "mine.py, line 10: the scheduler fails: NameError: "),
        ('rs")', 'rs", gone)', MODULES, "mine.py, line 5: the plug-in fails on import: "),
        ("view):", "view:", MODULES, "mine.py, line 12: the plug-in fails on import: "),
        ('rs")', 'rs", int)', MODULES, "mine.py, line 5: the scheduler 'theirs' cannot be ma"),
        ('"theirs"', '"easy"', ENTRY, "mine.py, line 5: there is a scheduler 'easy' already"),
        ("pass", "pass", f"{ENTRY}:gone", "entry point them: the plug-in fails on import: "),
        ("pass", "pass", f"{ENTRY}d", "entry point them: the plug-in fails on import: No mod"),
    ],
)
def test_a_mistake_of_another_distribution(tmp_path, right, wrong, entry, says):
    """Its files come by entry points, and are named like those of a user."""
    place = tmp_path / "them" / "policies"
    place.mkdir(parents=True)
    for each in (place, place.parent):
        (each / "__init__.py").touch()
    (place / "mine.py").write_text(THEIRS.replace(right, wrong, 1))
    about = tmp_path / "them-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: them\nVersion: 1\n")
    (about / "entry_points.txt").write_text(entry)
    (tmp_path / "log.swf").write_text(LOG)
    start = "from foresail.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", start, "simulate", "log.swf", "--with", "theirs"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert says in done.stderr
