"""Google's dp-accounting as an independent opinion on composed privacy losses."""

from dp_accounting.pld import privacy_loss_distribution


def gaussian_delta(mu: float, count: int, epsilon: float, *, upper: bool) -> float:
    """delta of a composed Gaussian mechanism, pessimistic or optimistic."""
    single = privacy_loss_distribution.from_gaussian_mechanism(
        1.0 / mu,
        value_discretization_interval=mu / 50.0,
        pessimistic_estimate=upper,
        use_connect_dots=upper,
    )
    return float(single.self_compose(count).get_delta_for_epsilon(epsilon))


def randomized_response_delta(noise: float, num_buckets: int, count: int, epsilon: float) -> float:
    """Pessimistic delta of composed k-ary randomized response."""
    single = privacy_loss_distribution.from_randomized_response(
        noise, num_buckets, value_discretization_interval=1e-3
    )
    return float(single.self_compose(count).get_delta_for_epsilon(epsilon))
