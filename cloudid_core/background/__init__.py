"""Background work: due queues, the leadership that fences it, the loop that runs it, the journal of intents."""
