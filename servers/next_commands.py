"""Next commands: what somebody who has just started a server could copy into another terminal."""

from __future__ import annotations

from cloudid_core.values.secret import Secret


def text(url: str, root_token: Secret, provider: str) -> str:
    """A first look at the service and at its simulated cloud, then one machine's login; for a POSIX shell."""
    return f"""
Next, in another terminal (the login needs jq):

  export CLOUDID={url} TOKEN={root_token.reveal()} SIMULATOR={provider}
  curl -s $CLOUDID/v1/sys/health
  curl -s -H "X-Service-Token: $TOKEN" $CLOUDID/v1/auth/token/lookup-self
  curl -s $SIMULATOR/simulator/world > world.json

  RESOURCE=https://management.azure.com/
  jq --arg resource $RESOURCE '{{tenant_id: .tenant, $resource}} + (.applications[0] | {{client_id, client_secret}})' \\
    world.json | curl -s -H "X-Service-Token: $TOKEN" -d @- $CLOUDID/v1/auth/cloud/config
  jq '{{bound_subscription_ids: .subscriptions}}' \\
    world.json | curl -s -H "X-Service-Token: $TOKEN" -d @- $CLOUDID/v1/auth/cloud/role/web
  METADATA=$SIMULATOR/machines/web/metadata/identity/oauth2/token
  JWT=$(curl -s -H "Metadata: true" "$METADATA?api-version=2018-02-01&resource=$RESOURCE" | jq -r .access_token)
  jq --arg jwt "$JWT" '{{role: "web", $jwt, subscription_id: .subscriptions[0],
    resource_group_name: "prod", vm_name: "web"}}' world.json | curl -s -d @- $CLOUDID/v1/auth/cloud/login

"""
