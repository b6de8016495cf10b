"""The Azure client, without I/O: it builds requests to Azure's HTTP APIs and reads the responses."""

from . import applications, assignments, groups, memberships
from .applications import (
    SINGLE_TENANT,
    Application,
    Description,
    NewPassword,
    Password,
    applications_by_client_id,
    change_audience,
    describe_application,
    ensure_application,
    find_application,
    make_password,
    marked_applications,
    marked_by,
)
from .assertions import Assertions, Source, federated_token_file
from .assignments import assign, assignment_path, is_assigned, other_assignments, scope
from .certificates import add_certificate
from .client import PROVIDER_FAILURES, Client, Credentials, ProviderFailure, refusal_of
from .codes import PROVIDER_CODES
from .compute import Machine
from .discovery import KeyDocument, usable_keys
from .facts import known_groups, known_machine, machine_facts, member_groups
from .federated_credentials import add_federated_credential, federated_credentials
from .granted import Actions, actions_at, directory_permissions
from .identities import Identities, PlatformIdentity, Proofs, identities_for_writing, lending
from .memberships import MEMBERSHIPS
from .oauth import AccessToken, ask_for_token, prove_credential, token_endpoint
from .objects import MOST_SELECTED, Id, find_by_id, select_until
from .principals import ensure_principal
from .proofs import CERTIFICATE, FEDERATED, PROOFS, SECRET, Proof
from .propagation import GRACE, FreshObject, prove, retry_while_propagating, wait_until_proven
from .provisioned import Provisioned, Removal, remove
from .retry import RetryPolicy
from .rights import Rights, rights_made
from .signing_keys import KeySet, known_keys, refresh_ahead, refreshed_for
from .single_flight import once
from .troubles import Family, Trouble, forget_mount, forget_troubles, trouble_of, troubles
