"""What servers say of themselves, as an operator asks for it."""

import asyncio

import httpx

from shuffledp.deploy.servers.http_server import inner_app


async def asked(app, path):
    """Return status and text of an answer of an application."""
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
        answer = await client.get(path)
        return answer.status_code, answer.text


def readiness(watch):
    """Return what the inner port says of being ready."""
    return asyncio.run(asked(inner_app(watch), "/readyz"))


def number_of(watch, name):
    """Return one number as it is served."""
    _, text = asyncio.run(asked(inner_app(watch), "/metrics"))
    found = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return float(found[f"shuffledp_{name}"])
