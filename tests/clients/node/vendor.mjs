// The vendor's identity libraries against the simulated cloud, over TLS.
import assert from "node:assert/strict";
import * as pipelines from "@azure/core-rest-pipeline";
import { ClientAssertionCredential, ClientSecretCredential, ManagedIdentityCredential } from "@azure/identity";
import { ConfidentialClientApplication } from "@azure/msal-node";

const RESOURCE = "https://management.azure.com/";
const SCOPE = `${RESOURCE}.default`;

function claims(token) {
  return JSON.parse(Buffer.from(token.split(".")[1], "base64url"));
}

// A client of MSAL for the application that may read and change everything. It knows the authority, so it need not ask the
// vendor's own host about it.
function client({ secure }, authority, changes = {}) {
  const { client_id: clientId, client_secret: clientSecret } = secure.world.applications[0];
  const knownAuthorities = [new URL(secure.url).host];
  return new ConfidentialClientApplication({ auth: { clientId, clientSecret, authority, knownAuthorities, ...changes } });
}

async function getsToken(target, authority) {
  const { accessToken } = await client(target, authority).acquireTokenByClientCredential({ scopes: [SCOPE] });
  assert.equal(claims(accessToken).appid, target.secure.world.applications[0].client_id);
}

export async function secretBelowTenant(target) {
  await getsToken(target, `${target.secure.url}/${target.secure.world.tenant}`);
}

export async function secretBelowLogin(target) {
  await getsToken(target, `${target.secure.url}/login/${target.secure.world.tenant}`);
}

async function refusal(target, authority, changes) {
  try {
    await client(target, authority, changes).acquireTokenByClientCredential({ scopes: [SCOPE] });
  } catch (error) {
    return error.message;
  }
  assert.fail("it was not refused");
}

export async function wrongSecret(target) {
  const { url, world } = target.secure;
  assert.match(await refusal(target, `${url}/${world.tenant}`, { clientSecret: "wrong" }), /AADSTS7000215/);
}

export async function wrongPath(target) {
  const { url, world } = target.secure;
  const document = await (await fetch(`${url}/${world.tenant}/v2.0/.well-known/openid-configuration`)).json();
  const authorityMetadata = JSON.stringify({ ...document, token_endpoint: `${url}/T/T/oauth2/v2.0/token` });
  assert.match(await refusal(target, `${url}/${world.tenant}`, { authorityMetadata }), /There is nothing at this path/);
}

export async function secretCredential({ secure: { url, world } }) {
  const { client_id: clientId, client_secret: secret } = world.applications[0];
  const options = { authorityHost: url, disableInstanceDiscovery: true };
  const { token } = await new ClientSecretCredential(world.tenant, clientId, secret, options).getToken(SCOPE);
  assert.equal(claims(token).aud, RESOURCE.replace(/\/$/, ""));
}

// With an assertion that nobody trusts: it arrives, and the refusal says why.
export async function assertionCredential({ secure: { url, world } }) {
  const { client_id: clientId } = world.applications[0];
  const options = { authorityHost: url, disableInstanceDiscovery: true };
  const credential = new ClientAssertionCredential(world.tenant, clientId, async () => "a.b.c", options);
  await assert.rejects(credential.getToken(SCOPE), /AADSTS50027/);
}

// Through the variable that pods set; the library puts a slash before the query.
export async function managedIdentity({ secure: { url, world } }) {
  const [machine] = world.machines;
  process.env.AZURE_POD_IDENTITY_AUTHORITY_HOST = `${url}/machines/${machine.name}`;
  const { token } = await new ManagedIdentityCredential().getToken(SCOPE);
  assert.ok(machine.principals.includes(claims(token).oid));
}

// The pipeline of every library of the vendor, with a credential that has one token. Both clouds are alike, so the one over TLS,
// which the pipeline requires, takes what the other gave.
export async function lentToken({ url, token, secure }) {
  const headers = { "X-Vault-Token": token };
  const { data } = await (await fetch(`${url}/v1/cloud/token/app`, { headers })).json();
  const read = async (accessToken) => {
    const lent = { token: accessToken, expiresOnTimestamp: Date.now() + 1000 * data.expires_in };
    const pipeline = pipelines.createPipelineFromOptions({});
    const credential = { getToken: async () => lent };
    pipeline.addPolicy(pipelines.bearerTokenAuthenticationPolicy({ credential, scopes: SCOPE }));
    const request = pipelines.createPipelineRequest({ url: `${secure.url}/arm/subscriptions?api-version=2022-12-01` });
    return (await pipeline.sendRequest(pipelines.createDefaultHttpClient(), request)).status;
  };
  assert.equal(await read(data.access_token), 200);
  assert.equal(await read(`${data.access_token.slice(0, -8)}AAAAAAAA`), 401);
}
