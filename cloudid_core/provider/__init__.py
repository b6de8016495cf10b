"""The provider, sans IO: builds requests to the cloud's HTTP interfaces and reads their answers."""

from . import applications, assignments, groups, memberships
from .acceptance import wait_until_proven
from .applications import (
    CLOCK_SKEW,
    Application,
    NewPassword,
    Password,
    applications_by_client_id,
    describe_application,
    ensure_application,
    find_application,
    make_password,
    marked_applications,
)
from .assertions import Assertions, Source, federated_token_file
from .assignments import assign, assignment_path, scope, scope_of_assignment
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
from .oauth import AccessToken, ask_for_token, token_endpoint
from .objects import Id, find_by_id, literal, select
from .principals import ensure_principal
from .proofs import CERTIFICATE, FEDERATED, PROOFS, SECRET, Proof
from .propagation import GRACE, FreshObject, retry_while_propagating
from .provisioned import Provisioned, Removal, remove
from .retry import RetryPolicy
from .signing_keys import KeySet, known_keys, outdated_tenants, refresh_ahead, refreshed_for
from .single_flight import once

__all__ = [
    "CERTIFICATE",
    "CLOCK_SKEW",
    "FEDERATED",
    "GRACE",
    "MEMBERSHIPS",
    "PROOFS",
    "PROVIDER_CODES",
    "PROVIDER_FAILURES",
    "SECRET",
    "AccessToken",
    "Actions",
    "Application",
    "Assertions",
    "Client",
    "Credentials",
    "FreshObject",
    "Id",
    "Identities",
    "KeyDocument",
    "KeySet",
    "Machine",
    "NewPassword",
    "Password",
    "PlatformIdentity",
    "Proof",
    "Proofs",
    "ProviderFailure",
    "Provisioned",
    "Removal",
    "RetryPolicy",
    "Source",
    "actions_at",
    "add_certificate",
    "add_federated_credential",
    "applications",
    "applications_by_client_id",
    "ask_for_token",
    "assign",
    "assignment_path",
    "assignments",
    "describe_application",
    "directory_permissions",
    "ensure_application",
    "ensure_principal",
    "federated_credentials",
    "federated_token_file",
    "find_application",
    "find_by_id",
    "groups",
    "identities_for_writing",
    "known_groups",
    "known_keys",
    "known_machine",
    "lending",
    "literal",
    "machine_facts",
    "make_password",
    "marked_applications",
    "member_groups",
    "memberships",
    "once",
    "outdated_tenants",
    "refresh_ahead",
    "refreshed_for",
    "refusal_of",
    "remove",
    "retry_while_propagating",
    "scope",
    "scope_of_assignment",
    "select",
    "token_endpoint",
    "usable_keys",
    "wait_until_proven",
]
