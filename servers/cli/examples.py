"""Examples of every command, as `--help` and the reference show them. A test parses each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click

EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "serve": (
        "cloudid serve --settings cloudid.toml",
        "cloudid serve --settings cloudid.toml --workers 4",
    ),
    "dev": ("cloudid dev", "cloudid dev --root-token root --listen 127.0.0.1:8210"),
    "simulate": ("cloudid simulate --seed 7", "cloudid simulate --compare transcript.jsonl"),
    "init": ("cloudid init --settings cloudid.toml", "cloudid init --settings cloudid.toml --new-root-token"),
    "check": ("cloudid check --settings cloudid.toml", "cloudid check --settings cloudid.toml --json"),
    "backup": ("cloudid backup --settings cloudid.toml /var/backups/cloudid.sqlite",),
    "compact": ("cloudid compact --settings cloudid.toml",),
    "rekey": (
        "cloudid rekey --settings cloudid.toml --new-key-file new.key",
        "cloudid rekey --settings cloudid.toml --finish",
    ),
    "copy-store": ("cloudid copy-store --settings cloudid.toml postgres.toml",),
    "apply": ("cloudid apply ./cloudid --dry-run", "cloudid apply ./cloudid --prune"),
    "export": ("cloudid export ./cloudid",),
    "audit verify": (
        "cloudid audit verify audit.log",
        "cloudid audit verify audit.log --key $(cat checkpoint.key) --checkpoints kept.log",
    ),
    "trace": ("cloudid trace - audit.log", "cloudid trace hmac-sha256:1f3a audit.log.1 audit.log"),
    "revoke": (
        "cloudid revoke reader",
        "cloudid revoke cloud/creds/reader/8KxWq --wait 2m",
        "cloudid revoke auth/cloud/ --yes",
    ),
    "roles test": ("cloudid roles test roles.toml", "cloudid roles test cases.toml --address https://id.example.com"),
    "connect azure": (
        "cloudid connect azure cloud --feature azure_roles",
        "cloudid connect azure cloud --client-id $APP --client-secret secret --wait 300",
    ),
    "login": (
        "cloudid login --role web",
        "cloudid login --role web --exec terraform apply",
        "az account get-access-token --query accessToken -o tsv | cloudid login --role ci --jwt -",
    ),
    "agent": (
        "cloudid agent --role web --write login=/run/web/token",
        "cloudid agent --role web --write cloud/creds/reader=/run/web/azure.env --on-change 'systemctl reload web'",
    ),
    "creds": ("cloudid creds reader --json", "cloudid creds reader --exec ./report"),
    "why": ("cloudid why --role web", "cloudid why --last --json"),
    "bench": (
        "cloudid bench",
        "cloudid bench --groups 150 --key-bits 4096 --svg bench.svg",
        "cloudid bench --jwt token --jwks https://login.microsoftonline.com/common/discovery/v2.0/keys",
        "cloudid bench --against https://id.example.com --jwt token --role web",
    ),
    "status": ("cloudid status", "cloudid status --json"),
    "read": ("cloudid read sys/mounts", "cloudid read auth/token/lookup-self --field policies"),
    "list": ("cloudid list cloud/roles", "cloudid list auth/cloud/role after=m limit=50"),
    "write": (
        "cloudid write auth/cloud/role/web bound_resource_groups=prod token_ttl=1h",
        "cloudid write cloud/config client_secret=@secret",
        "cloudid write sys/policies/acl/web policy=@web.hcl",
    ),
    "patch": ("cloudid patch auth/cloud/role/web token_ttl=30m",),
    "delete": ("cloudid delete cloud/roles/reader",),
    "completion": ('eval "$(cloudid completion bash)"',),
}


def with_examples(command: click.Command, path: str) -> click.Command:
    """Give a command, and those below it, the examples that their help ends with."""
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            with_examples(below, f"{path} {name}")
    elif examples := EXAMPLES.get(path):
        command.epilog = "\n  ".join(["\b\nExamples:", *examples])
    return command
