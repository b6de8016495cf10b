"""What health can say is wrong: one row for each problem. The table in the documentation is printed from it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from shlex import quote
from typing import TypeAlias

Occurrence: TypeAlias = Mapping[str, str]
"""One instance of a problem: the values of the names in braces in its row. Never a secret."""


class Consequence(Enum):
    """What a problem means until it is fixed."""

    CANNOT_SERVE = "this node cannot serve requests, and sys/health answers 503"
    REFUSED = "requests that use it are refused"
    GOES_ON = "the service continues"


class HealthProblem(Enum):
    """Every problem that health reports: its text, its fix, and its consequence unless the node keeps serving.

    The name in lower case is the code. Where a request fixes the problem, the fix has the command that sends it, with
    the names of the problem quoted for a shell. Everyone sees codes; texts and fixes are for tokens that may read
    `sys/health`.
    """

    # Why requests should go to another node
    STORE_UNAVAILABLE = (
        "the store cannot be read or written",
        "see the reason in the server's log",
        Consequence.CANNOT_SERVE,
    )
    AUDIT_UNAVAILABLE = (
        "no audit device can be written to, so requests are refused",
        "see the reason in the server's log; the server retries every few seconds",
        Consequence.CANNOT_SERVE,
    )
    CLOCK_APART = (
        "this machine's clock is {seconds} s {side} the store's",
        "correct the clock that is wrong, and keep it right with NTP",
        Consequence.CANNOT_SERVE,
    )

    # What an operator should know
    SETTINGS_DIFFER = (
        "settings differ from those of another node: {names}",
        "give all nodes the same settings, and restart the nodes whose settings you change",
    )
    CREDENTIAL_AT_RISK = (
        "the root credential of {mount}: {reason}",
        "cloudid read {mount}/rotation shows its state; cloudid write {mount}/config client_secret=- "
        "writes a new client secret",
    )
    STATIC_SECRET_AT_RISK = (
        "the client secret of the static role {role} of {mount}: {reason}",
        "cloudid read {mount}/static-roles/{role} shows its state; cloudid write "
        "{mount}/rotate-role/{role} rotates it immediately",
    )
    REVOCATIONS_FAILING = (
        "{mount} has leases that could not be revoked after several attempts: {count}",
        "cloudid read sys/leases shows the reason for each",
    )
    CREDENTIAL_REFUSED = (
        "Azure has rejected the {credential} of {mount} since {since}: {reason}. Affected: {affected}",
        "cloudid write {mount}/config client_secret=- writes a new client secret, and also accepts "
        "tenant_id and client_id; cloudid read {mount}/permissions tests the credential",
    )
    PROVIDER_FAILING = (
        "{service} has not worked for {mount} since {since}: {reason}. Affected: {affected}",
        "allow the server to reach the host in the reason, or grant the permissions that cloudid read "
        "{mount}/permissions shows as missing",
    )
    SIGNING_KEYS_OUTDATED = (
        "the signing keys of the tenant {tenant} could not be fetched since {since}: {reason}",
        "allow the server to reach Azure's login service: one day after the last success, logins are refused",
    )
    ISSUER_UNPUBLISHED = (
        "the documents of the issuer {issuer} could not be published: {reason}",
        "allow the server to read and write at publish_to: until then, no new signing key is used",
    )
    BACKGROUND_FAILING = (
        "background work ({work}) has failed {count} times in a row: {reason}",
        "see the reason in the server's log",
    )
    FOLDER_NOT_APPLIED = (
        "the folder {folder} was not applied: {reason}",
        "fix the cause that the reason names; the server retries every minute, and immediately after SIGHUP",
    )
    SETTINGS_NOT_RELOADED = (
        "the settings could not be reloaded at {at}, so the old ones are still in effect: {reason}",
        "correct the settings, and reload them with SIGHUP",
    )
    DUE_NAME_DAMAGED = (
        "the store has an entry {key}, which is not the name of scheduled work",
        "the entry has no effect: remove it from the store while no server uses the store",
    )

    STORE_SHARED = (
        "users other than its owner can access the store's file, whose mode is {mode}",
        "chmod 600 {path}, or accept this with the setting allow_shared_store",
    )
    FOLDER_WRITABLE = (
        "users other than the server's can write to {folders}, whose contents the server trusts",
        "make the server's user the owner (chown), and run chmod go-w",
    )
    PLAIN_HTTP = (
        "tokens and secrets are sent unencrypted beyond this machine",
        "set tls_certificate and tls_key, listen on loopback, or accept this with the setting allow_plain_http",
    )
    DATABASE_EXPOSED = (
        "the connection to the database can be read or redirected beyond this machine: sslmode is {mode}",
        "set sslmode=verify-full in the store's URL, or accept this with the setting allow_exposed_database",
    )
    DATABASE_PUBLIC = (
        "every role of the database server may connect to the database, and can slow down or stop the store",
        "as the database's owner: REVOKE CONNECT ON DATABASE {database} FROM PUBLIC",
    )
    STORE_MISNAMED = (
        "the name of the store's file looks like the address of a database",
        "stop the server, rename the file and its setting, and change the password if the name contains one",
    )

    STORE_CUT_SHORT = (
        "the store has lost the last {count} acknowledged commits: its files are truncated, or are an older copy",
        "restore the newest backup, or restart to continue with the current contents",
    )

    AUDIT_DEVICE_FAILING = (
        "the audit device {device} cannot write to {place}: {reason}",
        "fix the cause that the reason names for {place}, or enable another device; the server retries "
        "every few seconds",
    )

    # What was stored before a rule became stricter (`system.stored_rules`)
    CONFIG_INVALID = (
        'the configuration of {mount} has a value in "{field}" that is no longer accepted',
        "cloudid write {mount}/config {field}=VALUE",
        Consequence.REFUSED,
    )
    DELAY_CLAMPED = (
        '"{field}" of the configuration of {mount} is longer than {most} s, so {most} s is used',
        "cloudid write {mount}/config {field}={most}",
    )
    QUOTA_BLOCK_CLAMPED = (
        'the quota {name} has a "block_interval" longer than {most} s, so {most} s is used',
        "cloudid write sys/quotas/rate-limit/{name} block_interval={most}",
    )
    ROLE_NEWER_THAN_NODE = (
        "the role {role} of {mount} has bounds that this node does not know: {bounds}",
        "upgrade this node, or remove the role: cloudid delete {mount}/role/{role}",
        Consequence.REFUSED,
    )
    LIST_TOO_LONG = (
        'the token role {role} has more values in "{field}" than are allowed, which slows down requests '
        "with its tokens",
        "cloudid write auth/token/roles/{role} {field}=VALUE",
    )
    POLICY_STAR_LITERAL = (
        'a value in allowed_parameters of the policy {policy} has "*" in the middle, where it is not a wildcard',
        "cloudid write sys/policies/acl/{policy} policy=@FILE",
    )
    APPLIED_WITHOUT_SUDO = (
        "the policy {policy} grants {path} without sudo, which that path requires",
        "cloudid write sys/policies/acl/{policy} policy=@FILE",
        Consequence.REFUSED,
    )
    APPLIED_RECORD_UNADOPTED = (
        "the objects of the folder {name} were recorded by an earlier version: none is pruned until the "
        "folder adopts them",
        "cloudid apply FOLDER --adopt adopts them; cloudid delete sys/applied/{name} forgets them",
    )
    PRIVILEGED_ROLE = (
        "the role {role} of {mount} assigns a role definition that can take over identities, which "
        "deny_privileged_roles refuses",
        "change the role's azure_roles, or allow such role definitions: cloudid write {mount}/config "
        "deny_privileged_roles=false",
        Consequence.REFUSED,
    )
    AUDIENCE_OPEN = (
        "{mount} has app registrations from earlier releases that other tenants can sign in to: {count}",
        "the server closes them in the background; if the count stays the same, grant the engine "
        "permission to change app registrations",
    )
    SECRET_TTL_CLAMPED = (
        '"{field}" of the role {role} of {mount} is longer than "max_secret_ttl", so "max_secret_ttl" is used',
        "cloudid write {mount}/{path} {field}={most}",
    )
    SELF_TARGET = (
        "the role {role} of {mount} uses an app registration that a mount of this service authenticates with",
        "cloudid delete {mount}/{path}",
        Consequence.REFUSED,
    )

    APPLICATION_KEPT = (
        "the role {role} of {mount} uses the app registration of the role {keeper} of {keeping_mount}",
        "cloudid delete {mount}/{path}",
    )
    AUDIT_KEYS_SECRET = (
        '{mount} is tuned to log "{field}" unhashed, but the field holds a secret, so it stays hashed',
        "cloudid write sys/mounts/{mount}/tune {setting}=VALUE",
    )
    AUDIT_FILE_ANYWHERE = (
        "the file of the audit device {device} was chosen by a request that could name any file on the server",
        "declare the device in the settings, or disable it and enable it again with a file in audit_directory",
    )

    AUDIT_FILE_OUTSIDE = (
        "the audit device {device} writes to {path}, which is not below this node's audit_directory",
        "give all nodes the same audit_directory, or disable the device: cloudid delete sys/audit/{device}",
    )

    AUDIT_DEVICE_SUSPENDED = (
        "the audit device {device}, which a request enabled, is suspended, because the settings declare "
        "a device of the same name",
        "remove the suspended device with cloudid delete sys/audit/{device}, or remove the declaration to use it again",
    )

    def __init__(self, text: str, remedy: str, consequence: Consequence = Consequence.GOES_ON) -> None:
        self._text = text
        self.remedy_pattern = remedy
        self.consequence = consequence

    @property
    def code(self) -> str:
        return self.name.lower()

    def text(self, occurrence: Occurrence) -> str:
        return self._text.format_map(occurrence)

    def remedy(self, occurrence: Occurrence) -> str:
        """Return the fix. Names in it are quoted, since a person pastes its commands into a shell."""
        return self.remedy_pattern.format_map(_Quoted(occurrence))


class _Quoted:
    """The values of an occurrence as words of a shell."""

    def __init__(self, occurrence: Occurrence) -> None:
        self._occurrence = occurrence

    def __getitem__(self, name: str) -> str:
        return quote(self._occurrence[name])
