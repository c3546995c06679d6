"""Options are declared by tables as --help shows them."""

import click
import pytest
from click.testing import CliRunner

from shuffledp.cli.options import cli, options

TABLE = """
    Users:
    --num-users N  How many
        of them.  [required]
    domain_size=--k K
        Number of answers (in [2, 9]).  [default: 1e1]
    Not much:
    --silent N     [=3]
    --bare N       [default: 30]
    --kind [a|b]   Which.  [default: b]
    --step STEP    One after the other.  [repeated]
    --clip         Or not.
    header=--no-header  None there.  [=True]
    --own N        Of another kind.
    """


@click.command(cls=cli.command_class)
@options("--first TEXT", TABLE, "Users:\n--last N", own=float)
def command(**found):
    click.echo(repr(found))


def run(*arguments):
    outcome = CliRunner().invoke(command, arguments)
    return outcome.output if outcome.exit_code else eval(outcome.output)  # noqa: S307  # ours


def test_values_have_their_kinds_names_and_defaults():
    assert run("--num-users", "1e3") == {
        "first": None,
        "num_users": 1000,
        "domain_size": 10,
        "silent": 3,
        "bare": 30,
        "kind": "b",
        "step": (),
        "clip": False,
        "header": True,
        "own": None,
        "last": None,
    }


def test_what_is_given_counts():
    steps = ("--step", "x", "--step", "y")
    found = run("--num-users", "2", *steps, "--clip", "--no-header", "--own", "0.5", "--k", "7")
    assert (found["step"], found["clip"], found["header"]) == (("x", "y"), True, False)
    assert (found["own"], found["domain_size"]) == (0.5, 7)


@pytest.mark.parametrize("wrong", [[], ["--num-users", "x"], ["--num-users", "2", "--kind", "c"]])
def test_what_is_wrong_is_refused(wrong):
    assert "Error: " in run(*wrong)


def test_commands_show_only_options_that_they_have():
    def help_of(*name):
        return CliRunner().invoke(cli, [*name, "--help"]).output

    assert "Spark" not in help_of("attack")
    assert "On Spark" in " ".join(help_of("run").split())
    assert "--discover" not in help_of("network", "prepare")
    assert "--discover" in help_of("task", "create")


def test_help_is_the_table():
    text = " ".join(CliRunner().invoke(command, ["--help"]).output.split())
    for entry in (
        "Options: --first TEXT Users: --num-users N How many of them. [required] --k K Number of "
        "answers (in [2, 9]). [default: 1e1] --last N --help Show this message and exit. "
        "Not much: --silent N --bare N [default: 30] --kind [a|b] Which. [default: b]",
        "--no-header None there. --own N Of another kind.",
    ):
        assert entry in text


def test_an_unknown_kind_is_no_option():
    with pytest.raises(KeyError, match="NUMBR"):
        options("--num-users NUMBR  How many.")


def commands(group=cli, path=()):
    """All commands, each with its path."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield pytest.param(command, id=" ".join((*path, name)))


@pytest.mark.parametrize("command", list(commands()))
def test_a_single_option_is_given_once(command):
    singles = [
        each
        for each in command.params
        if isinstance(each, click.Option) and not (each.multiple or each.is_flag)
    ]
    for option in singles:
        flag = option.opts[0]
        outcome = CliRunner().invoke(command, [flag, "1", f"{flag}=2"])
        assert outcome.exit_code == 2
        assert f"{flag} is given twice: give it once" in outcome.output
    repeated = [each.opts[0] for each in command.params if getattr(each, "multiple", False)]
    for flag in repeated:
        outcome = CliRunner().invoke(command, [flag, "clip", flag, "norm-sub"])
        assert "is given twice" not in outcome.output
