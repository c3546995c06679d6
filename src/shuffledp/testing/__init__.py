"""What every randomizer of categories promises, as checks that anyone can run on their own.

``check_randomizer(make)`` runs them all on randomizers of several sizes and losses. The
checks that carry the privacy claim compare in exact arithmetic with the channel matrix that the
randomizer states, and one compares drawn reports with it. None needs a test framework.
"""

from collections.abc import Mapping
from types import MappingProxyType

from shuffledp.testing import collecting, law
from shuffledp.testing.law import Check, ContractError, Make, check_samples_follow_channel

__all__ = [
    "CATEGORY_CHECKS",
    "Check",
    "ContractError",
    "Make",
    "check_randomizer",
    "check_samples_follow_channel",
]

#: Name of each check, and its function.
CATEGORY_CHECKS: Mapping[str, Check] = MappingProxyType(
    {
        "epsilon0-is-at-most-asked": law.check_epsilon0_is_at_most_asked,
        "rebuilding-gives-the-same-law": law.check_rebuilding_gives_the_same_law,
        "fingerprints-name-the-law": law.check_fingerprints_name_the_law,
        "profile-states-the-law": law.check_profile_states_the_law,
        "channel-rows-sum-to-one": law.check_channel,
        "epsilon0-is-the-exact-loss": law.check_epsilon0_is_exact,
        "blanket-is-the-infimum": law.check_blanket_is_the_infimum,
        "blanket-means-are-one": law.check_blanket_means_are_one,
        "report-columns-are-all-reports": law.check_report_columns,
        "supports-have-two-probabilities": law.check_supports_have_two_probabilities,
        "estimates-are-unbiased": law.check_estimates_are_unbiased,
        "samples-follow-the-channel": law.check_samples,
        "reports-have-the-stated-size": collecting.check_reports_have_the_stated_size,
        "empty-batches-work": collecting.check_empty_batches_work,
        "codes-outside-are-named": collecting.check_codes_outside_are_named,
        "codes-must-be-integers": collecting.check_codes_must_be_integers,
        "integer-types-agree": collecting.check_integer_types_agree,
        "seeds-reproduce": collecting.check_seeds_reproduce,
        "parameters-out-of-range-are-refused": collecting.check_parameters_out_of_range,
        "aggregates-are-sums-of-supports": collecting.check_aggregates_are_sums,
        "order-and-parts-do-not-matter": collecting.check_order_and_parts_do_not_matter,
        "reports-of-another-law-are-refused": collecting.check_other_laws_are_refused,
        "malformed-reports-are-refused": collecting.check_malformed_reports_are_refused,
        "impossible-reports-are-refused": collecting.check_impossible_reports_are_refused,
        "nothing-to-estimate-is-refused": collecting.check_nothing_to_estimate_is_refused,
    }
)


def check_randomizer(make: Make) -> tuple[str, ...]:
    """Check that a randomizer of categories keeps every promise.

    Parameters
    ----------
    make : callable
        Returns a randomizer for ``(k, epsilon0)``, given by position.

    Returns
    -------
    tuple of str
        Names of the checks passed, keys of `CATEGORY_CHECKS`. Those that had nothing to look at
        are missing: without a `channel` and `report_columns` the exact checks cannot be made, the
        one of epsilon0 among them.

    Raises
    ------
    ContractError
        At the first promise broken; the message begins with the name of the check.

    Notes
    -----
    The channel is what the randomizer states of itself. That reports follow it is checked by
    statistics, for a few laws; see `check_samples_follow_channel`. Cost: a few seconds.

    Examples
    --------
    >>> from shuffledp.randomizers import KRandomizedResponse
    >>> passed = check_randomizer(lambda k, _: KRandomizedResponse(domain_size=k, epsilon0=1.0))
    Traceback (most recent call last):
    shuffledp....ContractError: epsilon0-is-at-most-asked: k-rr (k = 2, epsilon0 = 1.0) costs ...
    """
    passed = []
    for name, check in CATEGORY_CHECKS.items():
        try:
            if check(make):
                passed.append(name)
        except ContractError as broken:
            raise ContractError(f"{name}: {broken}") from broken
        except Exception as error:
            raise ContractError(f"{name}: {type(error).__name__}: {error}") from error
    return tuple(passed)
