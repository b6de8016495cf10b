"""Next commands: what a person who has just started a server could copy into another terminal."""

from __future__ import annotations

from cloudid_core.values.secret import Secret


def text(url: str, root_token: Secret, provider: str) -> str:
    """A first look at the service and at its simulated cloud, then one machine's login; for a POSIX shell."""
    return f"""
Next, in another terminal:

  export CLOUDID={url} TOKEN={root_token.reveal()} SIMULATOR={provider}
  export RESOURCE=https://management.azure.com/
  curl -s $CLOUDID/v1/sys/health
  curl -s $SIMULATOR/simulator/world > world.json
  world() {{ python3 -c "import json, os; w = json.load(open('world.json')); print(json.dumps($1))"; }}
  ask() {{ curl -s -H "X-Service-Token: $TOKEN" -d @- $CLOUDID/v1/$1; }}

  world "dict({{k: w['applications'][0][k] for k in ('client_id', 'client_secret')}}, tenant_id=w['tenant'],
    resource='$RESOURCE')" | ask auth/cloud/config
  world "dict(bound_subscription_ids=w['subscriptions'])" | ask auth/cloud/role/web
  METADATA="$SIMULATOR/machines/web/metadata/identity/oauth2/token?api-version=2018-02-01&resource=$RESOURCE"
  export JWT=$(curl -s -H "Metadata: true" "$METADATA" | sed 's/.*"access_token": *"\\([^"]*\\)".*/\\1/')
  world "dict(role='web', jwt=os.environ['JWT'], subscription_id=w['subscriptions'][0],
    resource_group_name='prod', vm_name='web')" | ask auth/cloud/login

"""
