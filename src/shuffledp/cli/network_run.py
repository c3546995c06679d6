"""What ``shuffledp run --shuffler network`` does besides: graph, rounds, holders, facts."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from shuffledp.cli.options import whole_number

if TYPE_CHECKING:
    from shuffledp.collection.plan import Plan
    from shuffledp.collection.question import Question
    from shuffledp.collection.results import Result
    from shuffledp.collection.run import ReportSink
    from shuffledp.core.progress import Progress
    from shuffledp.network.arrangement import NetworkArrangement
    from shuffledp.network.run import NetworkPlan
    from shuffledp.network.walk.shuffler import NetworkBatch

Command = TypeVar("Command", bound=Callable[..., Any])


def rounds_or_auto(text: str) -> int | None:
    """Return a number of rounds; None where it is to be chosen.

    Examples
    --------
    >>> rounds_or_auto("60"), rounds_or_auto("auto")
    (60, None)
    """
    if text == "auto":
        return None
    rounds = whole_number(text)
    if rounds < 0:
        raise click.BadParameter(f"{text!r} is below 0; write a number of rounds, or auto")
    return rounds


def network_run_options(command: Command) -> Command:
    """Add the options of a shuffle through a network; `NetworkRun` takes their values."""
    for option in (
        click.option(
            "--lazy",
            "laziness",
            type=float,
            metavar="X",
            help="Chance that a report rests in a round, by a coin of its own; by default 0.",
        ),
        click.option(
            "--protocol",
            type=click.Choice(["all", "single"]),
            help="Holders hand in all reports they hold (default), or one of them.",
        ),
        click.option(
            "--rounds",
            metavar="T|auto",
            help="How often reports are passed on; auto (default): until epsilon is within 1% of "
            "its limit.",
        ),
        click.option(
            "--graph",
            type=click.Path(path_type=Path),
            help="Who passes reports to whom: a file with one edge a row; --id names its users.",
        ),
    ):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkRun:
    """The values of `network_run_options` for a shuffle through a network."""

    graph: Path
    rounds: int | None
    protocol: Literal["all", "single"]
    laziness: float
    id_column: str | None

    @classmethod
    def take(cls, options: dict[str, Any]) -> "NetworkRun | None":
        """Take the options out of a dictionary; None for other shufflers.

        The shuffler's name and ``--id`` belong to groups, too, and stay in the dictionary.
        """
        values = {name: options.pop(name) for name in ("graph", "rounds", "protocol", "laziness")}
        given = [name for name, value in values.items() if value is not None]
        if options["shuffler"] != "network":
            if given:
                raise click.UsageError(
                    f"{_option(given[0])} is for --shuffler network: add it, or leave it out"
                )
            return None
        if values["graph"] is None:
            raise click.UsageError(
                "--shuffler network needs --graph FILE, which says who passes reports to whom"
            )
        return cls(
            graph=values["graph"],
            rounds=rounds_or_auto(values["rounds"] or "auto"),
            protocol=values["protocol"] or "all",
            laziness=values["laziness"] or 0.0,
            id_column=options["id_column"],
        )

    def require_public(self, column: str | None) -> None:
        """Raise unless the column of answers is used for nothing but the answers."""
        if column is not None and column == self.id_column:
            raise click.UsageError(
                f"--id {column}: that column holds the answers, which are private; name a public "
                "column"
            )

    def open(
        self, table: Path, *, num_users: int, on_progress: "Progress | None"
    ) -> "PreparedNetwork":
        """Read the graph and find out how its walk mixes."""
        from shuffledp.network.mixing import NetworkMixing
        from shuffledp.network.run import NetworkPlan, read_network

        graph = read_network(self.graph, table, num_users=num_users, id_column=self.id_column)
        mixing = NetworkMixing(graph, laziness=self.laziness, on_progress=on_progress)
        return PreparedNetwork(
            plan=NetworkPlan(
                name=self.graph.name, mixing=mixing, rounds=self.rounds, protocol=self.protocol
            )
        )


def _option(name: str) -> str:
    """Return an option as it is written."""
    return "--lazy" if name == "laziness" else f"--{name}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedNetwork:
    """The network of one table, ready for its reports."""

    plan: "NetworkPlan"
    handed_in: "list[NetworkBatch]" = field(default_factory=list)

    def setting(
        self,
        question: "Question",
        *,
        epsilon: float | None,
        epsilon0: float | None,
        delta: float,
        randomizer: str | None,
    ) -> "tuple[Plan, NetworkArrangement]":
        """Return the randomizer for a question, and the exchange of its reports."""
        if epsilon is None:
            return self.plan.fixed(
                question,
                epsilon0=epsilon0 or 0.0,
                delta=delta,
                randomizer=randomizer,
                on_batch=self.handed_in.append,
            )
        return self.plan.planned(
            question,
            epsilon=epsilon,
            delta=delta,
            randomizer=randomizer,
            on_batch=self.handed_in.append,
        )

    def sink(self, path: Path, setting: "Plan") -> "ReportSink":
        """Return what stores reports beside their holders."""
        from shuffledp.network.run import holders_writer

        return holders_writer(path, setting, self.plan.mixing.graph, self.handed_in)

    def with_facts(self, result: "Result", on_progress: "Progress | None") -> "Result":
        """Return the result with all that its report says about the exchange."""
        from shuffledp.network.run import network_cautions, network_facts

        facts = network_facts(self.plan, result, self.handed_in[0], on_progress=on_progress)
        return replace(result, network=facts, warnings=(*result.warnings, *network_cautions(facts)))
