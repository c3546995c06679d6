"""Arguments of a command with defaults: an option is given once."""


def given_once(defaults, arguments):
    """Defaults, without those options, and their values, that the arguments give, and these."""
    kept, words = [], iter(map(str, defaults))
    for word in words:
        if word.startswith("--") and word in map(str, arguments):
            next(words)
        else:
            kept.append(word)
    return [*kept, *map(str, arguments)]
