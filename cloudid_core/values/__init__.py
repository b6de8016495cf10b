"""Values with a grammar: they are parsed once, where input arrives, and all other code relies on it."""

from . import coercion, duration, json_text, listing, names, network, resource_id, rfc3339
from .bounds import DAY, LONGEST_BELIEF, LONGEST_DELAY, LONGEST_INTERVAL, LONGEST_LIFE, LONGEST_SECRET, least
from .coercion import boolean, text
from .folding import fold, fold_location, folds_to
from .globs import have_common, is_like
from .guid import GUID, guid_as_written, uuid_text
from .json_text import computed
from .listing import comma_list
from .names import NAME, are_same, mount_path, name, policy_name
from .resource_id import (
    PROVIDER,
    RESOURCE,
    RESOURCE_GROUP,
    SCALE_SET,
    SCALE_SET_INSTANCE,
    USER_ASSIGNED_IDENTITY,
    VIRTUAL_MACHINE,
    VM_NAME,
    ResourceId,
    parse,
    resource_group,
    vm_name,
)
from .schedule import Schedule
from .secret import Secret, flaw_of_secret, without_tokens
