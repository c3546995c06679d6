"""``shuffledp network``: reports that walk from user to user instead of a trusted shuffler."""

import click

from shuffledp.cli.network_account import account
from shuffledp.cli.network_collect import collect
from shuffledp.cli.network_curve import curve
from shuffledp.cli.network_peer import peer
from shuffledp.cli.network_prepare import prepare
from shuffledp.cli.network_relay import relay


@click.group()
def network() -> None:
    """Shuffle without a trusted shuffler: reports walk along a graph from user to user.

    account and curve say how private that is after how many rounds; prepare, relay, peer and
    collect do it. `shuffledp run --shuffler network` simulates it on one machine.
    """


for command in (account, curve, prepare, relay, peer, collect):
    network.add_command(command)
