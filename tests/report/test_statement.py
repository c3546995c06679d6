import math
from types import SimpleNamespace

import pytest

from shuffledp.core.bound import Bound, Guarantee
from shuffledp.core.profile import LocalProfile
from shuffledp.report.statement import Statement, meets_target, privacy_statement


def guarantee(*, lower=None, upper=0.5, delta=1e-8, num_users=6366):
    bound = Bound(lower=lower, upper=upper, method="m", source="s", assumptions=())
    return Guarantee(epsilon=bound, delta=delta, num_users=num_users)


def words(result):
    return " ".join(title + " " + text for title, text in privacy_statement(result).paragraphs)


def test_it_says_who_the_adversary_is_and_what_the_numbers_mean(make_result):
    text = words(make_result())
    assert "An adversary who sees all 6,366 shuffled reports and knows everyone else's" in text
    assert "a factor of at most 1.65" in text  # e^0.5
    assert "a chance of at most 62.3%" in text  # e^0.5 / (1 + e^0.5)
    assert "1 in 100 million" in text
    assert "they do so for anyone at all has a chance below 1 in 15,700" in text  # 1 / (6366e-8)
    assert "a factor of at most 12.2" in text  # e^2.5, without the shuffler
    assert "every further collection" in text


def test_the_safe_number_comes_first_and_then_the_gap(make_result):
    statement = privacy_statement(make_result())
    assert statement.headline == "epsilon <= 0.5000 at delta <= 1e-8 for each of 6,366 users"
    assert [name for name, _ in statement.facts[:3]] == ["Epsilon", "Gap", "Delta"]
    facts = dict(statement.facts)
    assert facts["Epsilon"] == "0.499967 (proved upper bound)"
    assert facts["Gap"] == "0.131%: no analysis can show epsilon below 0.499310"
    assert facts["Delta"] == "1e-8"
    assert facts["Source"].endswith("Lemma 5.3")


def test_where_nothing_is_known_below_it_says_so(make_result):
    result = make_result(lower=None)
    assert "How much smaller the true epsilon is, is not known" in words(result)
    assert dict(privacy_statement(result).facts)["Gap"] == "not known"


@pytest.mark.parametrize(
    ("lower", "shown"), [(0.5, "none"), (0.4999999, "below 0.001%"), (0.4, "20.0%")]
)
def test_gaps_are_readable_at_every_size(make_result, lower, shown):
    result = make_result(guarantee=guarantee(lower=lower))
    assert dict(privacy_statement(result).facts)["Gap"].startswith(f"{shown}: no analysis can")


def test_a_computed_delta_is_described_as_such(make_result):
    bound = Bound(lower=1e-9, upper=2e-9, method="m", source="s", assumptions=())
    result = make_result(guarantee=Guarantee(epsilon=0.5, delta=bound, num_users=6366))
    statement = privacy_statement(result)
    assert statement.facts[0] == ("Delta", "2e-9 (proved upper bound)")
    assert dict(statement.facts)["Epsilon"] == "0.5"
    assert "delta = 2e-9 is a proved upper bound" in words(result)


def test_no_finite_epsilon_is_no_promise(make_result):
    text = words(make_result(guarantee=guarantee(upper=math.inf)))
    assert "no finite epsilon is proved" in text
    assert "odds between them" not in text


def test_delta_zero_has_no_exception(make_result):
    assert "There is none: delta = 0" in words(make_result(guarantee=guarantee(delta=0.0)))


def test_a_delta_too_large_for_so_many_users_is_called_out(make_result):
    text = words(make_result(guarantee=guarantee(delta=0.01)))
    assert "they may do so for somebody: ask for a delta far below 0.00015" in text


def test_a_large_epsilon_is_not_praised(make_result):
    assert "protects little" in words(make_result(guarantee=guarantee(upper=6.0)))
    assert "protects little" not in words(make_result())


def test_fewer_honest_users_are_counted(make_result):
    text = words(make_result(guarantee=guarantee(num_users=6000)))
    assert "6,000 are counted on to be honest" in text


def test_a_local_failure_chance_is_not_hidden(make_result):
    real = make_result().randomizer
    approximate = SimpleNamespace(
        domain_size=real.domain_size,
        name="other",
        epsilon0=2.5,
        fingerprint="f",
        profile=LocalProfile(epsilon0=2.5, delta0=1e-6),
    )
    assert "but for delta0 = 1e-6" in words(make_result(randomizer_object=approximate))


def test_a_simulation_says_first_that_it_protects_nobody(make_result):
    title, text = privacy_statement(make_result(collected_by="simulation")).paragraphs[0]
    assert title == "This was a simulation."
    assert "protects nobody" in text


def test_targets_are_met_in_both_numbers(make_result):
    assert meets_target(make_result())
    assert not meets_target(make_result(target_epsilon=0.4))
    assert not meets_target(make_result(target_delta=1e-9))


def test_the_statement_alone_in_markdown_and_latex():
    texts = (("Title.", "50% of a_b <= c."),)
    statement = Statement(headline="x < 1", paragraphs=texts, facts=(("Gap", "5%"),))
    assert statement.to_markdown() == (
        "x &lt; 1\n\n**Title.** 50% of a\\_b &lt;= c.\n\n- **Gap**: 5%\n"
    )
    assert statement.to_latex() == (
        "x \\textless{} 1\n\n\\paragraph{Title.} 50\\% of a\\_b \\textless{}= c.\n\n"
        "\\begin{description}\n\\item[Gap] 5\\%\n\\end{description}\n"
    )
