"""A network that listens, cuts, repeats, holds back and changes: one HTTP request at a time."""

import asyncio
import re
import threading
from collections.abc import Callable
from contextlib import suppress

#: What may become of a request.
PASS, LOSE, TWICE, LATER, CUT = "pass", "lose", "twice", "later", "cut"


class Network:
    """A proxy before a server, in a thread; ``fate`` is that of a request, by number and path.

    Lost requests never arrive, later ones when the next one passes, those whose answer is cut do
    arrive, and bytes are an answer in the server's name. ``alter`` may change the body of an
    answer, given the path. Requests and answers that pass are in ``heard``.
    """

    def __init__(
        self,
        server: str,
        fate: Callable[[int, bytes], str | bytes] = lambda _number, _path: PASS,
        alter: Callable[[bytes, bytes], bytes] = lambda _path, body: body,
    ) -> None:
        self._host, _, port = server.rpartition(":")
        self._port, self._fate, self._alter = int(port), fate, alter
        self.heard: list[tuple[bytes, bytes]] = []
        self.fates: list[str | bytes] = []
        self._held: list[bytes] = []
        self._loop = asyncio.new_event_loop()
        self._listening = self._loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", 0)
        )
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def address(self) -> str:
        """ADDRESS:PORT at which it stands for the server."""
        return f"127.0.0.1:{self._listening.sockets[0].getsockname()[1]}"

    def __enter__(self) -> "Network":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        async def end() -> None:
            self._listening.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for each in others:
                each.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    def replay(self, request: bytes) -> bytes:
        """Send a request that was heard, or one made of it; return the body of the answer."""
        sent = asyncio.run_coroutine_threadsafe(self._ask(request), self._loop)
        return sent.result(30).partition(b"\r\n\r\n")[2]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                request = await _message(reader)
                answer = await self._pass_on(request)
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
        writer.close()

    async def _pass_on(self, request: bytes) -> bytes | None:
        """Let a request meet its fate; None if its connection is cut."""
        path = request.split(b" ")[1]
        fate = self._fate(len(self.fates), path)
        self.fates.append(fate)
        if isinstance(fate, bytes):
            return _answer(fate)
        if fate == LATER:
            self._held.append(request)
        if fate in (LOSE, LATER):
            return None
        if fate == TWICE:
            await self._ask(request)
        answer = await self._ask(request)
        while self._held:
            await self._ask(self._held.pop())  # the last one first
        self.heard.append((request, answer))
        body = answer.partition(b"\r\n\r\n")[2]
        changed = self._alter(path, body)
        if fate == CUT:
            return None
        return answer if changed == body else _answer(changed)

    async def _ask(self, request: bytes) -> bytes:
        """Return the server's answer."""
        reader, writer = await asyncio.open_connection(self._host, self._port)
        writer.write(request)
        await writer.drain()
        answer = await _message(reader)
        writer.close()
        return answer


def _answer(body: bytes) -> bytes:
    """Return an answer that all is well."""
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


async def _message(reader: asyncio.StreamReader) -> bytes:
    """Return a request or an answer, head and body."""
    head = await reader.readuntil(b"\r\n\r\n")
    found = re.search(rb"\r\ncontent-length: *([0-9]+)", head, re.IGNORECASE)
    return head + await reader.readexactly(int(found[1]) if found else 0)
