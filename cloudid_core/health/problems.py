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

    CANNOT_SERVE = "this node cannot serve: health is 503"
    REFUSED = "refused at use"
    GOES_ON = "goes on"


class HealthProblem(Enum):
    """Every problem that health reports: its text, its fix, and its consequence unless the node keeps serving.

    The name in lower case is the code. Where a request fixes the problem, the fix has the command that sends it, with
    the names of the problem quoted for a shell. Everyone sees codes; texts and fixes are for tokens that may read
    `sys/health`.
    """

    # Why requests should go to another node
    STORE_UNAVAILABLE = ("the store cannot be read or written", "the server's log says why", Consequence.CANNOT_SERVE)
    AUDIT_UNAVAILABLE = (
        "no audit device can record, so that requests are refused",
        "the server's log says why; a device is tried again every few seconds",
        Consequence.CANNOT_SERVE,
    )
    CLOCK_APART = (
        "this machine's clock is {seconds} s {side} the store's",
        "set the clock that is wrong, and let NTP keep it",
        Consequence.CANNOT_SERVE,
    )

    # What an operator should know
    SETTINGS_DIFFER = (
        "settings differ from those of another node: {names}",
        "give all nodes the same settings, and restart those that had others",
    )
    CREDENTIAL_AT_RISK = (
        "the root credential of {mount}: {reason}",
        "cloudid read {mount}/rotation shows its state; cloudid write {mount}/config client_secret=- writes another "
        "secret",
    )
    STATIC_SECRET_AT_RISK = (
        "the secret of the static role {role} of {mount}: {reason}",
        "cloudid read {mount}/static-roles/{role} shows its state; cloudid write {mount}/rotate-role/{role} tries "
        "again",
    )
    REVOCATIONS_FAILING = (
        "{mount} has leases that could not be revoked in several attempts: {count}",
        "cloudid read sys/leases shows the reason of each",
    )
    CREDENTIAL_REFUSED = (
        "Azure has rejected the {credential} of {mount} since {since}: {reason}. Affected: {affected}",
        "cloudid write {mount}/config client_secret=- writes another secret, and takes tenant_id and client_id; "
        "cloudid read {mount}/permissions proves the credential again",
    )
    PROVIDER_FAILING = (
        "{service} has not worked for {mount} since {since}: {reason}. Affected: {affected}",
        "let the server reach the host that the reason names, or grant what cloudid read {mount}/permissions shows as "
        "missing",
    )
    SIGNING_KEYS_OUTDATED = (
        "the signing keys of the tenant {tenant} could not be fetched since {since}: {reason}",
        "let the server reach Azure's login service: a day after the last success logins are refused",
    )
    ISSUER_UNPUBLISHED = (
        "the documents of the issuer {issuer} could not be published: {reason}",
        "let the server write and read at publish_to: until then no new key signs",
    )
    BACKGROUND_FAILING = (
        "background work ({work}) has failed {count} times in a row: {reason}",
        "the server's log says why",
    )
    FOLDER_NOT_APPLIED = (
        "the folder {folder} is not applied: {reason}",
        "fix what the reason names; the server tries again each minute, and immediately when it gets SIGHUP",
    )
    SETTINGS_NOT_RELOADED = (
        "the settings could not be reloaded at {at}, and the old ones are in effect: {reason}",
        "correct what the reason names, and reload again (SIGHUP)",
    )
    DUE_NAME_DAMAGED = (
        "the store has an entry {key}, which is no name of work that is due",
        "nothing is due there: remove the entry from the store while no server uses it",
    )

    STORE_SHARED = (
        "others than its owner may use the store's file, whose mode is {mode}",
        "chmod 600 {path}, or accept it by the setting allow_shared_store",
    )
    FOLDER_WRITABLE = (
        "users other than the server's can write to {folders}, which the server trusts",
        "run chown on them for the server's user, and chmod go-w",
    )
    PLAIN_HTTP = (
        "tokens and secrets travel unencrypted beyond this machine",
        "set tls_certificate and tls_key, listen on loopback, or accept it by the setting allow_plain_http",
    )
    DATABASE_EXPOSED = (
        "the connection to the database can be read or redirected beyond this machine: sslmode is {mode}",
        "set sslmode=verify-full in the address of the store, or accept it by the setting allow_exposed_database",
    )
    DATABASE_PUBLIC = (
        "every role of the database server may connect to the database, where it can slow down or stop the store",
        "as the database's owner: REVOKE CONNECT ON DATABASE {database} FROM PUBLIC",
    )
    STORE_MISNAMED = (
        "the name of the store's file looks like the address of a database",
        "stop the server, rename the file and name it in the settings; change the password if the name has one",
    )

    STORE_CUT_SHORT = (
        "the store lacks the last {count} acknowledged commits: its files were cut short, or are an older copy",
        "restore the newest backup, or restart to go on with what is there",
    )

    AUDIT_DEVICE_FAILING = (
        "the audit device {device} cannot write to {place}: {reason}",
        "fix what the reason says of {place}, or enable another device; the server tries again every few seconds",
    )

    # What was stored before a rule became stricter (`system.stored_rules`)
    CONFIG_INVALID = (
        'the configuration of {mount} has a text in "{field}" that is no longer accepted',
        "cloudid write {mount}/config {field}=VALUE",
        Consequence.REFUSED,
    )
    DELAY_CLAMPED = (
        '"{field}" of the configuration of {mount} is longer than {most} s, and counts as that',
        "cloudid write {mount}/config {field}={most}",
    )
    QUOTA_BLOCK_CLAMPED = (
        'the quota {name} has a "block_interval" longer than {most} s, and {most} s take effect',
        "cloudid write sys/quotas/rate-limit/{name} block_interval={most}",
    )
    ROLE_NEWER_THAN_NODE = (
        "the role {role} of {mount} has bounds that this node does not know: {bounds}",
        "upgrade this node, or remove the role: cloudid delete {mount}/role/{role}",
        Consequence.REFUSED,
    )
    LIST_TOO_LONG = (
        'the token role {role} has more values in "{field}" than may be written: each token made with it is slow',
        "cloudid write auth/token/roles/{role} {field}=VALUE",
    )
    POLICY_STAR_LITERAL = (
        'a value in allowed_parameters of the policy {policy} has "*" inside, where it does not stand for any text',
        "cloudid write sys/policies/acl/{policy} policy=@FILE",
    )
    APPLIED_WITHOUT_SUDO = (
        "the policy {policy} grants {path} without sudo, which that path needs",
        "cloudid write sys/policies/acl/{policy} policy=@FILE",
        Consequence.REFUSED,
    )
    APPLIED_RECORD_UNADOPTED = (
        "an earlier version recorded what the folder {name} made: nothing is pruned until the folder adopts the record",
        "cloudid apply FOLDER --adopt takes it over; cloudid delete sys/applied/{name} drops it",
    )
    PRIVILEGED_ROLE = (
        "the role {role} of {mount} assigns a definition that takes over identities: deny_privileged_roles refuses it",
        "let the role assign another definition, or allow it: cloudid write {mount}/config deny_privileged_roles=false",
        Consequence.REFUSED,
    )
    AUDIENCE_OPEN = (
        "{mount} has app registrations of earlier releases that other tenants can sign in to: {count}",
        "the server closes them in the background; if the count stays, let the engine's credential change app "
        "registrations",
    )
    SECRET_TTL_CLAMPED = (
        '"{field}" of the role {role} of {mount} is longer than "max_secret_ttl", which takes effect',
        "cloudid write {mount}/{path} {field}={most}",
    )
    SELF_TARGET = (
        "the role {role} of {mount} points at an application that the service proves itself with",
        "cloudid delete {mount}/{path}",
        Consequence.REFUSED,
    )

    APPLICATION_KEPT = (
        "the role {role} of {mount} points at the app registration that the role {keeper} of {keeping_mount} keeps",
        "cloudid delete {mount}/{path}",
    )
    AUDIT_KEYS_SECRET = (
        '{mount} asks audit devices for "{field}" unhashed, but holds a secret there: it stays hashed',
        "cloudid write sys/mounts/{mount}/tune {setting}=VALUE",
    )
    AUDIT_FILE_ANYWHERE = (
        "the file of the audit device {device} was chosen by a request that could name any file of the server",
        "declare the device in the settings, or disable it and enable it again with a file below audit_directory",
    )

    AUDIT_DEVICE_SUSPENDED = (
        "the audit device {device} that a request enabled is suspended: the settings declare another one of this name",
        "cloudid delete sys/audit/{device} removes the suspended one; without the declaration it is used again",
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
