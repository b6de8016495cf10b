// A peer's client for Node against a server of ours.
import assert from "node:assert/strict";
import { createRemoteJWKSet, jwtVerify } from "jose";
import vault from "node-vault";

const RESOURCE = "https://management.azure.com/";
const RULES = 'path "cloud/creds/*" { capabilities = ["read"] } path "identity/oidc/token/*" { capabilities = ["read"] }';

function client({ url, token }, options = {}) {
  return vault({ endpoint: url, token, ...options });
}

// Both default mounts, configured: the role "web" logs in the cloud's machines, the role "app" issues passwords.
export async function prepare(target) {
  const [own, other] = target.world.applications;
  const { tenant, subscriptions } = target.world;
  const proof = { tenant_id: tenant, client_id: own.client_id, client_secret: own.client_secret };
  const root = client(target);
  await root.write("auth/cloud/config", { ...proof, resource: RESOURCE });
  await root.write("auth/cloud/role/web", { bound_subscription_ids: subscriptions, token_policies: ["app"] });
  await root.write("cloud/config", { ...proof, subscription_id: subscriptions[0] });
  const token_scopes = [`${RESOURCE}.default`];
  await root.write("cloud/roles/app", { application_object_id: other.object_id, ttl: "1h", max_ttl: "2h", token_scopes });
  await root.addPolicy({ name: "app", rules: RULES });
}

// The library has no login for machines: a write to the path is one.
async function loggedIn(target) {
  const [machine] = target.world.machines;
  const query = new URLSearchParams({ "api-version": "2018-02-01", resource: RESOURCE });
  const metadata = `${target.cloud}/machines/${machine.name}/metadata/identity/oauth2/token?${query}`;
  const { access_token: jwt } = await (await fetch(metadata, { headers: { Metadata: "true" } })).json();
  const { auth } = await client(target, { token: "" }).write("auth/cloud/login", {
    role: "web",
    jwt,
    subscription_id: machine.subscription,
    resource_group_name: machine.resource_group,
    vm_name: machine.name,
  });
  return client(target, { token: auth.client_token });
}

export async function logIn(target) {
  const { data } = await (await loggedIn(target)).tokenLookupSelf();
  assert.deepEqual([data.path, data.policies], ["auth/cloud/login", ["app", "default"]]);
}

// Another service knows the address of the issuer, and who it is itself.
export async function verifyToken(target) {
  const audience = "https://shop.example";
  await client(target).write("identity/oidc/role/shop", { client_id: audience });
  const { data } = await (await loggedIn(target)).read("identity/oidc/token/shop");
  const issuer = `${target.url}/v1/identity/oidc`;
  const described = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json();
  const keys = createRemoteJWKSet(new URL(described.jwks_uri));
  const { payload } = await jwtVerify(data.token, keys, { issuer, audience });
  assert.deepEqual([payload.vm_name, payload.role], [target.world.machines[0].name, "web"]);
  await assert.rejects(jwtVerify(data.token, keys, { issuer, audience: "https://other.example" }));
  const others = createRemoteJWKSet(new URL(`${issuer}/plugins/.well-known/keys`));
  await assert.rejects(jwtVerify(data.token, others, { audience }));
}

export async function mounts(target) {
  const root = client(target);
  await root.mount({ mount_point: "node", type: "azure", description: "of Node" });
  assert.equal((await root.mounts()).data["node/"].type, "azure");
  await root.remount({ from: "node", to: "node-2" });
  await root.unmount({ mount_point: "node-2" });
  await root.enableAuth({ mount_point: "node", type: "azure" });
  assert.equal((await root.auths()).data["node/"].type, "azure");
  await root.disableAuth({ mount_point: "node" });
  assert.equal((await root.auths()).data["node/"], undefined);
}

export async function policies(target) {
  const root = client(target);
  await root.addPolicy({ name: "node", rules: RULES });
  assert.equal((await root.getPolicy({ name: "node" })).rules, RULES);
  assert.ok((await root.policies()).policies.includes("node"));
  await root.removePolicy({ name: "node" });
  await assert.rejects(root.getPolicy({ name: "node" }), (error) => error.response.statusCode === 404);
}

export async function credentials(target) {
  const root = client(target);
  const issued = await root.read("cloud/creds/app");
  assert.equal(issued.data.client_id, target.world.applications[1].client_id);
  assert.equal((await root.renew({ lease_id: issued.lease_id, increment: 600 })).lease_duration, 600);
  await root.revoke({ lease_id: issued.lease_id });
  await root.revokePrefix({ path_prefix: "cloud/creds/app" });
}

export async function unwrap(target) {
  const root = client(target, { requestOptions: { headers: { "X-Vault-Wrap-TTL": "60s" } } });
  const { wrap_info: wrapped } = await root.read("auth/token/lookup-self");
  const holder = client(target, { token: wrapped.token });
  assert.equal((await holder.unwrap({ token: wrapped.token })).data.id, target.token);
  await assert.rejects(holder.unwrap({ token: wrapped.token }), /wrapping token is not valid or does not exist/);
}

// A client that creates or renews a token goes on with that one.
export async function tokens(target) {
  const root = client(target);
  const { auth } = await client(target).tokenCreate({ policies: ["app"], ttl: "1h", meta: { of: "node" } });
  const { data } = await root.tokenLookup({ token: auth.client_token });
  assert.deepEqual(data.meta, { of: "node" });
  await client(target).tokenRenew({ token: auth.client_token, increment: "2h" });
  assert.ok((await root.tokenAccessors()).data.keys.includes(auth.accessor));
  await root.addTokenRole({ role_name: "node", allowed_policies: "app" });
  assert.ok((await root.tokenRoles()).data.keys.includes("node"));
  assert.deepEqual((await root.getTokenRole({ role_name: "node" })).data.allowed_policies, ["app"]);
  await client(target).tokenCreateRole({ role_name: "node", policies: ["app"] });
  await root.removeTokenRole({ role_name: "node" });
  await root.tokenRevokeAccessor({ accessor: auth.accessor });
  await assert.rejects(root.tokenLookup({ token: auth.client_token }), (error) => error.response.statusCode === 403);
}

export async function state(target) {
  const anybody = client(target, { token: "" });
  assert.equal((await anybody.status()).sealed, false);
  assert.equal((await anybody.initialized()).initialized, true);
  assert.equal((await anybody.health()).initialized, true);
  assert.equal((await anybody.leader()).is_self, true);
}

export async function errors(target) {
  await assert.rejects(client(target, { token: "wrong" }).mounts(), /permission denied/);
  await assert.rejects(client(target).write("auth/cloud/role/all", {}), /must have at least one bound constraint/);
  await assert.rejects(client(target).write("auth/cloud/login", { role: "web", jwt: "x" }), (error) => {
    return error.response.statusCode === 400 && error.response.body.errors.length > 0;
  });
}

// The library joins its end point and the path as they are.
export async function doubleSlash(target) {
  await assert.rejects(client(target).read("cloud//config"), (error) => error.response.statusCode === 400);
}
