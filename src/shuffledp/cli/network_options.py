"""Options about a walk that several of the network commands share."""

import click

protocol_option = click.option(
    "--protocol",
    type=click.Choice(["all", "single"]),
    default="all",
    show_default=True,
    help="Holders hand in all reports they hold, or one.",
)

lazy_option = click.option(
    "--lazy",
    "laziness",
    type=float,
    default=0.0,
    show_default=True,
    metavar="P",
    help="Chance that a report stays where it is in a round, by a coin of its own.",
)

positions_option = click.option(
    "--positions",
    "method",
    type=click.Choice(["auto", "exact", "spectral"]),
    default="auto",
    show_default=True,
    help="Follow all reports exactly, or bound where they are by eigenvalues.",
)

users_option = click.option(
    "--users",
    type=click.Choice(["worst", "all"]),
    default="worst",
    show_default=True,
    help="all: beside the worst user, epsilon for shares of the users.",
)
