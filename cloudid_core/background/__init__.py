"""Background work: the leadership, the loop that runs jobs, the journal of intents, and the other nodes."""

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
