"""Calls: one request to Azure with all its retries, within its deadline."""

from __future__ import annotations

from itertools import count
from typing import Final

from attrs import evolve, frozen

from ..backoff import draw_chance
from ..deadline import Deadline
from ..effects import CallProvider, HttpRequest, HttpResponse, Instant, Now, RandomBytes, Sleep
from ..errors import Code, ProviderAmbiguous, ProviderUnreachable, Refused
from ..values import uuid_text
from .read_budget import Line
from .responses import CLIENT_REQUEST_ID
from .retry import RETRIED, SHORTEST_TRY, RetryPolicy, is_uncertain, retry_after
from .single_flight import Flight, Pause
from .troubles import Calls

UNCONNECTED_SECONDS: Final = 12.0
"""Seconds for which a call is retried if Azure cannot even be reached.

Clients repeat requests that get a 503, and many give up after a total of one minute without showing the reason.
"""

CLIENT_REQUEST_IDS: Final = (CLIENT_REQUEST_ID, "x-ms-client-request-id")
"""Headers with the client's id of a request, which Azure's support asks for if there was no response.

Microsoft Graph and the token endpoint use the first, Azure Resource Manager the second.
"""


@frozen(kw_only=True)
class RetryBudget:
    """The duration of one attempt in seconds, the number of retries, and the deadline of all attempts.

    `flight`: the shared look-up of the call. `line`: where a read of Azure Resource Manager waits for its turn.
    `calls`: where the result of each attempt is noted.
    """

    timeout: float
    retry: RetryPolicy
    deadline: Deadline
    flight: Flight | None = None
    line: Line | None = None
    calls: Calls | None = None


async def deliver(request: HttpRequest, budget: RetryBudget, *, idempotent: bool = True) -> HttpResponse:
    """Return Azure's last response, whatever its status, after as many attempts as allowed.

    All attempts have the same client request id, which is also in the headers of the response and in the text of a
    failure.

    Raise `ProviderUnreachable` if there is no response, `ProviderAmbiguous` if a call that is not idempotent may have
    been executed, and `Refused` with `DEADLINE_PASSED`.
    """
    own_id = uuid_text(await RandomBytes(16))
    request = evolve(request, headers={**request.headers, **dict.fromkeys(CLIENT_REQUEST_IDS, own_id)})
    started_at = 0.0
    for retry_number in count(1):
        if budget.line is not None:
            await budget.line.admit(is_repeated=retry_number > 1)
        left = await budget.deadline.remaining()
        started_at = started_at or budget.deadline.at - left
        answer = await _try(request, min(budget.timeout, left))
        if budget.line is not None and isinstance(answer, HttpResponse):
            await budget.line.heed(answer)
        if budget.calls is not None:
            await budget.calls.note(answer)
        status = answer.status if isinstance(answer, HttpResponse) else None
        if not idempotent and (answer.sent if isinstance(answer, ProviderUnreachable) else is_uncertain(answer.status)):
            text = f"the outcome of a change in Azure is unknown (client request {own_id})"
            raise ProviderAmbiguous(text, answered=status is not None)
        if retry_number > budget.retry.max_retries or (status is not None and status not in RETRIED):
            break
        if (pause := await _pause(answer, retry_number, budget, started_at)) is None:
            break
        await Sleep(pause)
    if isinstance(answer, HttpResponse):
        return evolve(answer, headers={**answer.headers, CLIENT_REQUEST_ID: own_id})
    if await Now() >= budget.deadline.at:
        raise Refused(Code.DEADLINE_PASSED) from answer
    raise ProviderUnreachable(f"{answer} (client request {own_id})", sent=answer.sent) from answer


async def _try(request: HttpRequest, timeout: float) -> HttpResponse | ProviderUnreachable:
    try:
        return await CallProvider(request, timeout)
    except ProviderUnreachable as error:
        return error


async def _pause(
    answer: HttpResponse | ProviderUnreachable, retry_number: int, budget: RetryBudget, started_at: Instant
) -> float | None:
    """Return the seconds before a retry. `None` if Azure asks for too many, or too few are left.

    If no connection is made, the last retry is `UNCONNECTED_SECONDS` after the first attempt.
    """
    now = await Now()
    asked = retry_after(answer.headers, now) if isinstance(answer, HttpResponse) else None
    if asked is None:
        pause = budget.retry.pause(retry_number, await draw_chance())
        if isinstance(answer, ProviderUnreachable) and not answer.sent:
            pause = min(pause, started_at + UNCONNECTED_SECONDS - now)
            if pause <= 0:
                return None
        if budget.flight is not None:  # a pause that the provider asked for is kept by everybody
            budget.flight.pause = Pause(now + pause)
    elif asked <= budget.retry.max_retry_delay:
        pause = asked
    else:
        return None
    return pause if now + pause + SHORTEST_TRY <= budget.deadline.at else None
