"""What is allowed but should make a user think twice, one sentence each."""


def delta_cautions(delta: float, num_users: int) -> tuple[str, ...]:
    """Return a warning if ``delta`` is so large that it permits publishing someone's answer.

    Parameters
    ----------
    delta : float
        Failure probability, in [0, 1).
    num_users : int
        Number of users.

    Returns
    -------
    tuple of str
        Empty where ``delta < 1 / num_users``.

    Examples
    --------
    >>> delta_cautions(1e-8, 1000)
    ()
    >>> len(delta_cautions(0.01, 1000))
    1
    """
    if delta * num_users < 1.0:
        return ()
    return (
        f"delta = {delta:g} is not below 1/num_users = {1 / num_users:g}: publishing one user's "
        f"answer in the clear would meet it; ask for a far smaller one, such as "
        f"{0.001 / num_users:.0e}.",
    )
