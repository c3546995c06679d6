"""Options that the commands about monitoring share."""

import click

from shuffledp.cli.options import answer_list, whole_number

# Written out, since --help must not load the laws of the signs; a test compares them.
PROTOCOLS = ("predrawn-signs", "sampled-change")
ENCODINGS = ("one-hot", "hadamard")

max_changes_option = click.option(
    "--max-changes",
    type=whole_number,
    required=True,
    metavar="K",
    help="Changes of a user's value that are followed, counting the first value.",
)

delta_option = click.option(
    "--delta", type=float, required=True, help="Central failure probability, far below 1/users."
)

categories_option = click.option(
    "--categories",
    type=answer_list,
    metavar="A,B,...",
    help="Values are one of these, rather than on or off.",
)

confidence_option = click.option(
    "--confidence",
    type=float,
    default=0.95,
    show_default=True,
    help="That the bands of all periods hold at once with.",
)
