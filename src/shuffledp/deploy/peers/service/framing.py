"""Several messages in the body of one response: each behind its length, four bytes, big-endian."""

from collections.abc import Iterable

from shuffledp.core.errors import DataError

_LENGTH_BYTES = 4


def join_messages(messages: Iterable[bytes]) -> bytes:
    r"""Return messages in one body.

    Parameters
    ----------
    messages : iterable of bytes
        Each shorter than 4 GiB.

    Examples
    --------
    >>> join_messages([b"ab", b""])
    b'\x00\x00\x00\x02ab\x00\x00\x00\x00'
    """
    return b"".join(len(each).to_bytes(_LENGTH_BYTES, "big") + each for each in messages)


def split_messages(body: bytes) -> list[bytes]:
    """Return the messages in a body.

    Parameters
    ----------
    body : bytes
        What `join_messages` returned.

    Returns
    -------
    list of bytes
        In their order.

    Raises
    ------
    DataError
        If the body ends in the middle of a message.
    """
    messages: list[bytes] = []
    place = 0
    while place < len(body):
        start = place + _LENGTH_BYTES
        end = start + int.from_bytes(body[place:start], "big")
        if start > len(body) or end > len(body):
            raise DataError(
                f"a response of {len(body):,} bytes ends in the middle of message "
                f"{len(messages) + 1:,}: it was cut short on the way; ask again"
            )
        messages.append(body[start:end])
        place = end
    return messages
