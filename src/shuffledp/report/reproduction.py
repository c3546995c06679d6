"""The Python that repeats a run, as printed at the end of the report."""

from dataclasses import fields
from typing import Any

from shuffledp._version import __version__
from shuffledp.collection.results import GroupFacts, NetworkFacts, Result
from shuffledp.core.bound import Bound
from shuffledp.network.exchange_facts import ExchangeFacts

_LONGEST_LIST = 400  # characters; the table of estimates lists all labels


def python_code(result: Result) -> str:
    """Return code that computes the same guarantee and plans the same collection.

    Parameters
    ----------
    result : Result
        Of any kind of question.

    Returns
    -------
    str
        Runs as it is, but for ``values`` and lists of labels too long to be written out, which
        are ``[...]``.
    """
    if result.groups is not None:
        return _code_within_groups(result)
    if result.network is not None:
        return _code_through_network(result, result.network)
    law, guarantee = result.randomizer, result.guarantee
    given_one = (
        f"delta={guarantee.delta_upper!r}"
        if isinstance(guarantee.epsilon, Bound)
        else f"epsilon={guarantee.epsilon_upper!r}"
    )
    values = "values, seed=..." if result.is_simulation else "values"
    return (
        f"import shuffledp as sdp  # version {__version__}\n"
        f"from {type(law).__module__} import {type(law).__name__}\n\n"
        "# The guarantee, which needs no data:\n"
        f"law = {law!r}\n"
        f"print(sdp.account(law.profile, num_users={guarantee.num_users}, {given_one}).bound)\n\n"
        "# A collection that asks for the same:\n"
        f"question = sdp.{_question(result.question, law)}\n"
        "plan = sdp.plan(\n"
        f"    question, num_users={result.num_users},\n"
        f"    epsilon={result.target_epsilon!r}, delta={result.target_delta!r},\n"
        f"    randomizer={law.name!r},\n)\n"
        f"result = sdp.run(plan, {values})"
    )


def _code_within_groups(result: Result) -> str:
    """Return code for a shuffle within groups, whose guarantee depends on theta alone."""
    law, groups = result.randomizer, result.groups
    if groups is not None and groups.rank_distance is None:
        return _code_by_displacement(result, groups)
    theta, distance = (groups.theta, groups.rank_distance) if groups else (0.0, "kendall")
    return (
        f"import shuffledp as sdp  # version {__version__}\n"
        f"from {type(law).__module__} import {type(law).__name__}\n"
        "from shuffledp.groups.privacy.grouped import grouped_epsilon\n\n"
        "# The guarantee, which needs no data:\n"
        f"law = {law!r}\n"
        "print(grouped_epsilon(\n"
        f"    law.profile, num_users={result.num_users}, theta={theta!r},\n"
        f"    distance={distance!r}, delta={result.guarantee.delta_upper!r},\n))\n\n"
        "# The same shuffle of other reports, one a row:\n"
        "groups = sdp.groups.Groups.from_distance(points, radius)  # or from_graph, ...\n"
        "shuffler = sdp.groups.MallowsShuffler.for_groups(\n"
        f"    groups, {groups.alpha if groups else 0.0!r}, distance={distance!r}\n)\n"
        "released = shuffler.shuffle(reports, sdp.Entropy.from_operating_system())"
    )


def _code_by_displacement(result: Result, groups: GroupFacts) -> str:
    """Return code for noise on places, whose guarantee depends on who hides whom."""
    law = result.randomizer
    return (
        f"import shuffledp as sdp  # version {__version__}\n"
        f"from {type(law).__module__} import {type(law).__name__}\n"
        "from shuffledp.groups.privacy.displaced import displaced_epsilon\n\n"
        "# The guarantee, which needs no data:\n"
        f"law = {law!r}\n"
        "print(displaced_epsilon(\n"
        f"    law.profile, num_users={result.num_users},\n"
        f"    expected_crowd={groups.expected_crowd[0]!r},\n"
        f"    delta={result.guarantee.delta_upper!r},\n"
        "))\n\n"
        "# The same shuffle of other reports, one a row:\n"
        "groups = sdp.groups.Groups.from_distance(points, radius)  # or from_graph, ...\n"
        f"shuffler = sdp.groups.DisplacementShuffler.for_groups(groups, {groups.alpha!r}, "
        "coordinates=points, metric=metric)\n"
        "released = shuffler.shuffle(reports, sdp.Entropy.from_operating_system())"
    )


def _code_through_network(result: Result, facts: NetworkFacts) -> str:
    """Return code for a shuffle through a network, whose guarantee depends on the graph."""
    law, delta = result.randomizer, result.guarantee.delta_upper
    if isinstance(facts, ExchangeFacts):
        if facts.num_absences or facts.num_users < facts.num_invited:
            return (
                "# The guarantee depends on who took part and was away when: the relay's record\n"
                "# has that, and `shuffledp network collect` computes it."
            )
        delta -= facts.overload
    return (
        f"import shuffledp as sdp  # version {__version__}\n"
        f"from {type(law).__module__} import {type(law).__name__}\n"
        "from shuffledp.network.graphs.graph_files import read_graph\n"
        "from shuffledp.network.mixing import NetworkMixing\n"
        "from shuffledp.network.walk.shuffler import NetworkShuffler\n\n"
        "# The guarantee, which needs the graph and no data:\n"
        f"law = {law!r}\n"
        f"graph = read_graph({facts.graph!r})\n"
        f"mixing = NetworkMixing(graph, laziness={facts.laziness!r})\n"
        "print(mixing.epsilon(\n"
        f"    law.profile, rounds={facts.rounds}, delta={delta!r},\n"
        f"    protocol={facts.protocol!r},\n))\n\n"
        "# The same exchange of other reports, one for each user of the graph:\n"
        "shuffler = NetworkShuffler(\n"
        f"    walk=mixing.walk, rounds={facts.rounds}, protocol={facts.protocol!r}\n)\n"
        "handed_in = shuffler.shuffle(reports, sdp.Entropy.from_operating_system())"
    )


def _question(question: Any, law: Any) -> str:
    """Return what makes the question; the user's own randomizers go by the one that was chosen."""
    arguments = [
        f"{each.name}={_value(getattr(question, each.name))}"
        for each in fields(question)
        if each.repr
    ]
    if getattr(question, "own", ()):
        arguments.append(f"own=({type(law).__name__},)")
    return f"{type(question).__name__}({', '.join(arguments)})"


def _value(value: object) -> str:
    """Return a value as Python, or an ellipsis in place of a list that is too long to read."""
    text = repr(value)
    is_too_long = isinstance(value, tuple) and len(text) > _LONGEST_LIST
    return "[...]" if is_too_long else text
