"use strict";
// The token lives in this variable alone: no storage, no cookie, no address. A reload forgets it.
let token = "";
let looks = 0; // answers to an earlier token are thrown away
let skew = 0; // the service's clock beside this one's, in milliseconds
let machines = [];
let appToken = "";
const PAUSE = 4000, MOST_LEASES = 100;
const HURRY = 10000, PATIENCE = 100000; // the service works on a request for 90 seconds at most
const LEASES = new Map();
const FRESH = 20000; // a lease may be renewed, or revoked, before its end
const at = (id) => document.getElementById(id);

class Failed extends Error {
  constructor(status, body) {
    super((body?.errors ?? []).join("; ") || `the service answered ${status}`);
    this.status = status;
    this.codes = body?.codes ?? [];
  }
}

async function fetched(address, options, patience = PATIENCE) {
  try {
    return await fetch(address, { ...options, signal: AbortSignal.timeout(patience) });
  } catch {
    throw new Failed(0, { errors: ["the service does not answer"] });
  }
}

async function ask(path, body, method = body ? "POST" : "GET", as = token) {
  const headers = { "X-Vault-Token": as, "X-Vault-Request": "true" };
  const options = { method, headers, body: body && JSON.stringify(body), cache: "no-store" };
  const isHealth = path === "sys/health";
  const answer = await fetched(`../v1/${path}`, options, isHealth ? HURRY : PATIENCE);
  const said = answer.status === 204 ? {} : await answer.json().catch(() => ({}));
  if (!answer.ok && !(isHealth && "initialized" in said)) throw new Failed(answer.status, said);
  return said;
}

// Cause and fix of each error code, from the table that the terminal and the log use too.
let advice = {};
fetched("codes.json", { cache: "no-cache" }).then((answer) => answer.json()).then((codes) => { advice = codes; }).catch(() => {});
function advised(codes, names = {}) {
  const row = codes.map((each) => advice[each]).find(Boolean);
  if (!row) return null;
  const filled = (text) => text.replace(/\b(MOUNT|ROLE|PATH)\b/g, (name) => names[name.toLowerCase()] || name);
  return make("div", { class: "advice" }, make("p", {}, `Cause: ${filled(row.cause)}`), make("p", {}, `Fix: ${filled(row.fix)}`));
}

async function askCloud(path, body) {
  const options = { method: body ? "POST" : "GET", headers: { "X-Cloudid-UI": "1" }, body: body && JSON.stringify(body) };
  const answer = await fetched(`cloud/${path}`, options);
  if (!answer.ok) throw new Failed(answer.status, null);
  return answer.json();
}

// Elements: every text of the service becomes a text, never markup.
function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) element.setAttribute(key, value);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}
const pill = (text, kind) => make("span", { class: `pill ${kind}` }, text);
const none = (text) => make("p", { class: "none" }, text);
const code = (text) => make("code", {}, text);
const soft = (text) => make("span", { class: "soft" }, text);
function table(names, rows) {
  const head = make("tr", {}, names.map((name) => make("th", { scope: "col" }, name)));
  const body = rows.map((row) => make("tr", {}, row.map((cell, at) => make("td", { "data-name": names[at] }, cell ?? ""))));
  return make("div", { class: "scroll" }, make("table", {}, make("thead", {}, head), make("tbody", {}, body)));
}
const shown = (value) => value === null || value === undefined ? "–" : typeof value === "object" ? (Array.isArray(value) ? value.join(", ") || "–" : JSON.stringify(value)) : String(value);

function span(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s >= 172800) return `${Math.floor(s / 86400)} days`;
  if (s >= 3600) return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
  return s >= 60 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${s} s`;
}
const left = (time) => (Date.parse(time) - Date.now() - skew) / 1000;
const ago = (time) => `${span(-left(time))} ago`;
const until = (time) => time ? `in ${span(left(time))}` : "–";
const short = (id) => id.split("/").filter(Boolean).pop() ?? id;

function fill(id, ...children) {
  const section = at(id);
  section.hidden = false;
  const place = section.querySelector("div");
  if (id === "logins" && place.querySelector(":focus-visible")) return; // whoever reads with the keyboard is not disturbed
  place.replaceChildren(...children);
}

function say(state, kind = "") {
  at("state").textContent = state;
  at("state").className = `pill ${kind}`;
}

function warn(text) {
  at("notice").hidden = !text;
  if (at("notice").textContent !== text) at("notice").textContent = text; // it is read aloud each time
}

// What failed, or null.
async function show(id, work) {
  const look = looks;
  try {
    const made = await work();
    if (look === looks) fill(id, ...[made].flat());
    return null;
  } catch (failure) {
    if (look !== looks) return failure;
    if (failure.status === 404) fill(id, none("There is nothing yet."));
    else if (failure.status === 403) fill(id, none("This token may not read it."));
    else fill(id, ...[none(`It cannot be read: ${failure.message}`), advised(failure.codes ?? [])].filter(Boolean));
    return failure;
  }
}

// Checks

const MARKS = { failed: ["✗", "bad"], undecided: ["?", "warn"], passed: ["✓", "good"] };
const open = new Set(); // what is unfolded stays so
function fold(key, summary, ...body) {
  const details = make("details", {}, make("summary", {}, summary), body);
  details.open = open.has(key);
  details.addEventListener("toggle", () => details.open ? open.add(key) : open.delete(key));
  return details;
}
function checksOf(checks, key) {
  const row = ({ verdict, check, expected, found }) => {
    const [mark, kind] = MARKS[verdict];
    return [[make("span", { class: `pill ${kind}`, title: verdict }, mark), " ", code(check)], shown(expected), shown(found)];
  };
  const of = (verdict) => checks.filter((check) => check.verdict === verdict).map(row);
  const tell = (rows) => table(["check", "expected", "found"], rows);
  const [worst, passed] = [[...of("failed"), ...of("undecided")], of("passed")];
  return [worst.length ? tell(worst) : null, passed.length ? fold(`${key} passed`, soft(`${passed.length} checks passed`), tell(passed)) : null];
}

const names = ({ mount, role }) => ({ mount: mount.replace(/\/$/, ""), role });
async function logins() {
  const { data } = await ask("sys/internal/recent-logins");
  if (!data.logins.length && !data.unaccepted.length) return none("Nobody has logged in at this node yet.");
  const unaccepted = data.unaccepted.slice(0, 10).map((refusal) => {
    const key = ["unaccepted", refusal.mount, refusal.remote_address, ...refusal.codes].join(" ");
    const many = refusal.count > 1 ? soft(`× ${refusal.count}`) : null;
    const summary = [pill("refused", "bad"), make("span", {}, "a token that was not accepted"), code(refusal.codes.join(", ")),
      many, soft(`${ago(refusal.time)} from ${refusal.remote_address}`)];
    return fold(key, summary.filter(Boolean), make("div", { class: "inside" }, advised(refusal.codes, names(refusal)), checksOf(refusal.checks, key)));
  });
  const accepted = data.logins.slice(0, 25).map((login) => {
    const key = [login.verdict, login.role, login.principal_id, login.resource_id, ...login.codes].join(" ");
    const refused = login.verdict === "refused";
    const many = login.count > 1 ? soft(`× ${login.count}`) : null;
    const summary = [pill(login.verdict, refused ? "bad" : "good"),
      make("strong", {}, short(login.resource_id || login.principal_id)), make("span", {}, "as ", code(login.role)),
      refused ? code(login.codes.join(", ")) : null, many, soft(`${ago(login.time)} from ${login.remote_address}`)];
    return fold(key, summary.filter(Boolean), make("div", { class: "inside" }, soft(login.resource_id || login.principal_id), advised(login.codes, names(login)), checksOf(login.checks, key)));
  });
  return [...accepted, ...unaccepted];
}

// Leases

async function leaseIds(path = "") {
  const found = [];
  const below = path && `/${path.replace(/\/$/, "")}`;
  const { data } = await ask(`sys/leases/lookup${below}?list=true&limit=${MOST_LEASES + 1}`).catch((failure) => {
    if (failure.status === 404) return { data: { keys: [] } };
    throw failure;
  });
  for (const key of data.keys) {
    if (found.length > MOST_LEASES) break;
    if (key.endsWith("/")) found.push(...await leaseIds(path + key));
    else found.push(path + key);
  }
  return found;
}

async function leases() {
  const known = await leaseIds();
  const ids = known.slice(0, MOST_LEASES);
  for (const id of LEASES.keys()) if (!ids.includes(id)) LEASES.delete(id);
  await Promise.all(ids.map(async (id) => {
    const seen = LEASES.get(id);
    if (seen && left(seen.expire_time) >= 5 && Date.now() - seen.at < FRESH) return;
    const found = await ask("sys/leases/lookup", { lease_id: id }).catch(() => null);
    if (found) LEASES.set(id, { ...found.data, at: Date.now() });
  }));
  if (!LEASES.size) return none("Nothing is lent.");
  const rows = [...LEASES.values()].sort((a, b) => Date.parse(a.expire_time) - Date.parse(b.expire_time)).map((lease) => {
    const total = (Date.parse(lease.expire_time) - Date.parse(lease.last_renewal ?? lease.issue_time)) / 1000;
    const bar = make("meter", { min: 0, max: total, value: left(lease.expire_time), "aria-label": "time left" });
    const words = make("span", { class: "num" }, "");
    const cell = make("span", { "data-ends": lease.expire_time, "data-id": lease.id }, bar, " ", words);
    const state = lease.revoking ? pill(lease.revoke_error ? "stuck" : "ending", lease.revoke_error ? "bad" : "warn") : null;
    // ids begin with their time: those of one hour differ at their ends
    return [[code(lease.id.replace(/[^/]+$/, (end) => `…${end.slice(-8)}`)), " ", state], [cell]];
  });
  const more = known.length > ids.length ? none(`There are more: these are the first ${MOST_LEASES} by name.`) : null;
  return [more, table(["lease", "ends"], rows)].filter(Boolean);
}

function count() {
  for (const cell of document.querySelectorAll("[data-ends]")) {
    const seconds = left(cell.dataset.ends);
    cell.querySelector("meter").value = Math.max(0, seconds);
    cell.querySelector(".num").textContent = seconds > 0 ? span(seconds) : "being removed";
  }
}

// The rest

async function health() {
  const said = await ask("sys/health");
  skew = said.server_time_utc ? Math.round((said.server_time_utc + .5) * 1000 - Date.now()) : 0;
  if (Math.abs(skew) < 2000) skew = 0;
  const serves = said.initialized && !said.sealed;
  const problems = said.problem_details ?? (said.problems ?? []).map((text) => ({ code: text, text, remedy: "" }));
  if (!serves) say("cannot serve", "bad");
  else if (problems.length) say(`serves, ${problems.length} to look at`, "warn");
  else say("all is well", "good");
  const facts = soft(`cloudid ${said.cloudid_version} · store answers in ${said.store_latency_ms} ms`);
  if (!problems.length) return [none("All is well."), facts];
  return [table(["problem", "what to do"], problems.map((each) => [each.text, each.remedy])), facts];
}

async function nodes() {
  const { data } = await ask("sys/ha-status");
  return table(["node", "seen", ""], data.nodes.map((node) => [
    [node.hostname || "this node", " ", soft(node.version)], ago(node.last_echo), node.background_node ? pill("leads", "good") : null]));
}

let mounted = [];
async function mounts() {
  const { data: secret } = await ask("sys/mounts");
  const { data: auth } = await ask("sys/auth");
  const all = [...Object.entries(auth).map(([path, mount]) => [`auth/${path}`, mount]), ...Object.entries(secret)];
  mounted = all.filter(([, mount]) => mount.type === "cloud" || mount.type === "azure").map(([path]) => path);
  return table(["path", "type", "description"], all.map(([path, mount]) => [code(path), mount.type, mount.description || ""]));
}

const PHASES = { idle: "good", overlapping: "good", adding: "warn", proving: "warn" };
async function rotations() {
  if (!mounted.length) return none("No mount has a root credential.");
  const rows = await Promise.all(mounted.map(async (path) => {
    const { data } = await ask(`${path}rotation`);
    return [code(path), [pill(data.phase, PHASES[data.phase] ?? "warn"), data.last_error ? make("div", {}, data.last_error) : null],
      data.last_rotation ? ago(data.last_rotation) : "never", until(data.next_rotation), until(data.expires)];
  }));
  return table(["mount", "phase", "last", "next", "secret ends"], rows);
}

async function faults(rules) {
  const broken = (await askCloud("simulator/faults", rules)).length > 0;
  at("break").setAttribute("aria-pressed", String(broken));
  at("break").textContent = broken ? "Mend the provider" : "Break the provider";
  return broken;
}

async function cloud() {
  await faults();
  const ledger = await askCloud("simulator/ledger");
  const kinds = [...new Set(ledger.map((entry) => entry.kind))];
  const alive = (kind) => ledger.filter((entry) => entry.kind === kind && entry.deleted_at === null).length;
  const pills = kinds.filter(alive).map((kind) => pill(`${alive(kind)} × ${kind}`, "warn"));
  const removed = ledger.filter((entry) => entry.deleted_at !== null).length;
  at("objects").replaceChildren(soft("Made there and alive:"), ...(pills.length ? pills : [soft("nothing")]), soft(`· removed again: ${removed}`));
}

async function look() {
  if (!token || document.hidden) return;
  const mine = looks;
  const failure = await show("health", health);
  if (mine !== looks) return;
  warn(failure ? "No answer from the service: what is shown is as it last was." : "");
  if (failure) return say("no answer", "bad");
  const failures = await Promise.all([show("logins", logins), show("leases", leases), show("nodes", nodes),
    show("mounts", mounts), machines.length ? cloud().catch(() => null) : null]);
  failures.push(await show("rotations", rotations));
  count();
  if (failures.some((each) => each?.status === 403)) await forgetIfEnded(mine);
}

async function forgetIfEnded(mine) {
  const failure = await ask("auth/token/lookup-self").then(() => null, (failed) => failed);
  if (mine === looks && failure?.status === 403) forget("This token has ended: look with another one.");
}

function forget(text) {
  token = appToken = "";
  looks += 1;
  LEASES.clear();
  open.clear();
  for (const section of document.querySelectorAll("section")) section.hidden = true;
  for (const place of document.querySelectorAll("section > div:not(.row)")) place.replaceChildren();
  at("why").reset();
  at("happened").textContent = "";
  at("sign-in").hidden = false;
  at("forget").hidden = true;
  say("not looked yet");
  warn(text);
  at("token").focus();
}

at("sign-in").addEventListener("submit", async (event) => {
  event.preventDefault();
  const given = at("token").value.trim();
  at("token").value = "";
  token = given;
  looks += 1;
  try {
    await ask("auth/token/lookup-self");
  } catch (failure) {
    const refused = "This token is not good: it is unknown, has ended, or may not read auth/token/lookup-self.";
    return forget(failure.status === 403 ? refused : failure.message);
  }
  at("notice").hidden = at("sign-in").hidden = true;
  at("forget").hidden = at("explain").hidden = false;
  machines = (await askCloud("simulator/world").catch(() => null))?.machines ?? [];
  if (machines.length) {
    at("cloud").hidden = false;
    at("machine").replaceChildren(...machines.map(({ name }) => make("option", name === "web" ? { selected: "" } : {}, name)));
  }
  at("main").focus();
  await look();
});
at("forget").addEventListener("click", () => forget(""));

at("why").addEventListener("submit", async (event) => {
  event.preventDefault();
  const fields = Object.fromEntries([...new FormData(event.target)].map(([key, value]) => [key, value.trim()]));
  const place = at("explanation");
  try {
    const login = fields.login.startsWith("{") ? { claims: JSON.parse(fields.login) } : { jwt: fields.login };
    const { data } = await ask(`${fields.mount.replace(/\/$/, "")}/explain`, { role: fields.role, ...login });
    const kind = { admitted: "good", refused: "bad" }[data.verdict] ?? "warn";
    place.replaceChildren(make("p", {}, pill(data.verdict, kind), " ", code(data.codes.join(", "))), ...[advised(data.codes, names(fields)), ...checksOf(data.checks, "explained")].filter(Boolean));
  } catch (failure) {
    place.replaceChildren(...[none(failure.message), advised(failure.codes ?? [], names(fields))].filter(Boolean));
  }
});

// Beside a simulated cloud

async function act(work) {
  try {
    at("happened").textContent = await work();
  } catch (failure) {
    const text = `${failure.message}${failure.codes?.length ? ` (${failure.codes.join(", ")})` : ""}`;
    at("happened").replaceChildren(...[text, advised(failure.codes ?? [], { mount: "cloud", role: "reader" })].filter(Boolean));
  }
  await look();
}

at("log-in").addEventListener("click", () => act(async () => {
  const machine = machines.find(({ name }) => name === at("machine").value);
  const query = "api-version=2018-02-01&resource=https://management.azure.com/";
  const identity = await askCloud(`machines/${machine.name}/metadata/identity/oauth2/token?${query}`);
  const login = { role: "web", jwt: identity.access_token, subscription_id: machine.subscription,
    resource_group_name: machine.resource_group, resource_id: machine.resource_id };
  const { auth } = await ask("auth/cloud/login", login, "POST", "");
  appToken = auth.client_token;
  return `${machine.name} is logged in for ${span(auth.lease_duration)}, with the policies ${auth.policies.join(", ")}.`;
}));
at("lend").addEventListener("click", () => act(async () => {
  const lent = await ask("cloud/creds/reader", undefined, "GET", appToken || token);
  return `Lent to ${appToken ? "the machine" : "you"} for ${span(lent.lease_duration)}: ${lent.lease_id}`;
}));
at("break").addEventListener("click", () => act(async () => {
  const isBroken = at("break").getAttribute("aria-pressed") === "true";
  const fault = (family) => ({ match: { family }, times: null, action: { status: 503, code: "ServiceUnavailable", message: "broken" } });
  const broken = await faults(isBroken ? [] : ["graph", "arm", "login"].map(fault));
  return broken ? "The provider refuses every call now." : "The provider works again.";
}));

setInterval(look, PAUSE);
setInterval(count, 500);
document.addEventListener("visibilitychange", look);
at("token").focus();
