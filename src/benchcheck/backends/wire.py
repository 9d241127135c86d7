"""One server over HTTP: kept connections, a limit of time for each request, one retry policy for errors with a name.

aiohttp was chosen by measurement: 16 to 24 times the requests a second and core of httpx (docs/performance.md).
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from benchcheck.backends.replies import CLOSING
from benchcheck.errors import first_line

if TYPE_CHECKING:
    import aiohttp

__all__ = ["Answer", "DroppedError", "HungError", "UnreachableError", "Wire", "WireError"]

WAITS = 5
"""How often a server that is busy (429, 502, 503, 504) is asked again."""
FIRST_WAIT_S = 0.5
"""The first of those waits, doubled each time, where the server does not say how long."""
LONGEST_WAIT_S = 60.0
CONNECT_S = 15.0
"""A machine that does not take a connection within this is down."""
KEEP_ALIVE_S = 4.0
"""Idle connections are closed before uvicorn, under vLLM, closes them at 5 s: a request on its way would be lost."""
_BUSY = frozenset({429, 502, 503, 504})
_WHOLE = 1 << 20
"""Bodies from this size on go out in their pieces: joining them would copy a video's frames for each question."""


class WireError(Exception):
    """A request that got no reply; the message says why, in words."""


class UnreachableError(WireError):
    """No connection: the server is down, or the address is wrong."""


class DroppedError(WireError):
    """The connection ended before the reply did, twice."""


class HungError(WireError):
    """No whole reply within the time limit, twice."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole reply."""

    status: int
    body: bytes
    retry_after: str = ""


class Wire:
    """A server's address and the session that all servers share."""

    def __init__(self, session: aiohttp.ClientSession, url: str, timeout_s: float) -> None:
        """Keep what a request needs; nothing is sent.

        Args:
            session: with the key's header, if there is one.
            url: base URL, such as `http://host:8001/v1`.
            timeout_s: a request that takes longer has hung.
        """
        self.url = url.rstrip("/")
        self.root = self.url.removesuffix("/v1")
        self.host = urlsplit(url).netloc.rpartition("@")[2]
        self._session = session
        self.timeout_s = timeout_s

    async def complete(self, opening: bytes, content: Sequence[bytes], timeout_s: float = 0.0) -> Answer:
        """Send a chat completion and return its reply, whatever its status.

        A reset connection, a hung request and a status of 500 are tried once more, a busy server `WAITS` times.

        Raises:
            UnreachableError: no connection, and nothing was sent.
            DroppedError: the connection broke twice, or broke and could not be made again.
            HungError: no reply within the limit, twice; at once where the caller sets a limit of its own.
        """
        spent: Counter[object] = Counter()
        while True:
            try:
                answer = await self.once(
                    "POST", f"{self.url}/chat/completions", (opening, *content, CLOSING), timeout_s
                )
            except (DroppedError, HungError) as error:
                spent[type(error)] += 1
                if spent[type(error)] > 1 or (timeout_s and isinstance(error, HungError)):
                    raise
            except UnreachableError as error:
                if spent[DroppedError]:  # it was there when the request was sent
                    raise DroppedError(f"the connection ended before the reply, then: {error}") from error
                raise
            else:
                if not await self._once_more(answer, spent):
                    return answer

    async def _once_more(self, answer: Answer, spent: Counter[object]) -> bool:
        """Say whether a reply's status is worth another try, after the wait that it asks for."""
        if answer.status in _BUSY and spent[429] < WAITS:
            await asyncio.sleep(_wait(answer.retry_after, spent[429]))
            spent[429] += 1
            return True
        if answer.status == 500 and not spent[500]:
            spent[500] += 1
            return True
        return False

    async def once(self, method: str, url: str, pieces: Sequence[bytes] = (), timeout_s: float = 0.0) -> Answer:
        """Send one request and return its reply.

        Raises:
            WireError: there is none.
        """
        import aiohttp

        limit = aiohttp.ClientTimeout(total=timeout_s or self.timeout_s, sock_connect=CONNECT_S)
        size = sum(map(len, pieces))
        headers = {"Content-Type": "application/json", "Content-Length": str(size)} if pieces else {}
        data = (_stream(pieces) if size >= _WHOLE else b"".join(pieces)) if pieces else None
        try:
            async with self._session.request(
                method, url, data=data, headers=headers, timeout=limit, allow_redirects=False
            ) as reply:
                return Answer(reply.status, await reply.read(), reply.headers.get("Retry-After", ""))
        except aiohttp.ConnectionTimeoutError as error:
            raise UnreachableError(f"no connection within {min(CONNECT_S, timeout_s or self.timeout_s):g} s") from error
        except TimeoutError as error:  # before OSError, of which it is one
            raise HungError(f"no reply within {timeout_s or self.timeout_s:g} s") from error
        except aiohttp.ClientConnectorError as error:
            raise UnreachableError(f"no connection ({_connecting(error)})") from error
        except aiohttp.ClientResponseError as error:
            return Answer(200, f"{error.message} (no HTTP)".encode())
        except ValueError as error:  # aiohttp.InvalidURL is one, as is a name that IDNA does not take
            raise UnreachableError(f"no connection (no such address: {first_line(error)})") from error
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, ConnectionError) as error:
            raise DroppedError(f"the connection ended before the reply ({first_line(error)})") from error


async def _stream(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def _wait(retry_after: str, waits: int) -> float:
    """Return how many seconds to leave a busy server alone."""
    try:
        said = float(retry_after)
    except ValueError:  # a date, or nothing
        said = FIRST_WAIT_S * 2**waits
    return min(said, LONGEST_WAIT_S) if said >= 0 else FIRST_WAIT_S


def _connecting(error: aiohttp.ClientConnectorError) -> str:
    """Return why a connection could not be made, such as `Connection refused`."""
    inner = getattr(error, "os_error", None) or error  # a certificate's error has none
    number = getattr(inner, "errno", None)
    return os.strerror(number) if number and number > 0 else first_line(inner)
