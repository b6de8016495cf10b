// The program runs checks with the vendor's libraries and with a peer's client, as they are. It prints a line of JSON for
// each: {"check", "ok", "detail"}. Usage: main.mjs URL ROOT_TOKEN CLOUD_URL SECURE_CLOUD_URL: a server of ours, its simulated
// cloud, and one over TLS, which the vendor's libraries require.
import * as vault from "./vault.mjs";
import * as vendor from "./vendor.mjs";

const [url, token, cloud, secureCloud] = process.argv.slice(2);

// Every check is independent of the others. The tests in Python read the names from this table.
const checks = [
  ["MSAL gets a token below the tenant", vendor.secretBelowTenant],
  ["MSAL gets a token below /login", vendor.secretBelowLogin],
  ["MSAL shows the reason of a refusal", vendor.wrongSecret],
  ["MSAL shows the reason of a path that is not there", vendor.wrongPath],
  ["a client secret credential gets a token", vendor.secretCredential],
  ["a client assertion credential gets a token", vendor.assertionCredential],
  ["a managed identity gets its machine's token", vendor.managedIdentity],
  ["an access token of a role reads subscriptions", vendor.lentToken],
  ["a machine logs in and uses its token", vault.logIn],
  ["another service verifies a machine's token", vault.verifyToken],
  ["mounts are made, listed and removed", vault.mounts],
  ["policies are written, read and removed", vault.policies],
  ["credentials are issued, renewed and revoked", vault.credentials],
  ["an answer is unwrapped once", vault.unwrap],
  ["a token's life", vault.tokens],
  ["the state of the server", vault.state],
  ["errors have the server's words", vault.errors],
  ["a path with a double slash is refused", vault.doubleSlash],
];

const world = await (await fetch(`${cloud}/simulator/world`)).json();
const secureWorld = await (await fetch(`${secureCloud}/simulator/world`)).json();
const target = { url, token, cloud, world, secure: { url: secureCloud, world: secureWorld } };
await vault.prepare(target);
for (const [check, run] of checks) {
  let detail = "";
  let ok = true;
  try {
    await run(target);
  } catch (error) {
    [ok, detail] = [false, String(error?.stack ?? error)];
  }
  console.log(JSON.stringify({ check, ok, detail }));
}
