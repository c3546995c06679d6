"""``shuffledp monitor``: a changing statistic, tracked for months on one privacy budget."""

import click

from shuffledp.cli.monitor_plan import plan
from shuffledp.cli.monitor_simulate import simulate


@click.group()
def monitor() -> None:
    """Track how many users have a value, period by period, as values change.

    plan says beforehand what that costs and how exact it is; simulate does it to a table of
    histories.
    """


for command in (plan, simulate):
    monitor.add_command(command)
