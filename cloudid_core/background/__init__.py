"""Background work: the leadership that fences it, the loop that runs it, the journal of intents, the other nodes."""

from .journal import (
    OTHER_TENANT,
    UNDER_WAY,
    Intent,
    IntentGuard,
    abandon,
    abandoned_intent,
    attempt,
    closing,
    different_reasons,
    find_intent,
    look_again,
    marker,
    open_intent,
    reason_text,
    rescheduled,
    undo,
    undo_until,
    withdraw,
)
from .loop import Handler, Loop
from .nodes import leave, nodes_with_other_master_keys, refresh_cluster_view
