"use strict";
// Only this variable holds the token: no storage, cookie or address does. Reloading the page forgets it.
let token = "";
let session = 0; // answers to the token of an earlier session are discarded
let skew = 0; // milliseconds by which the service's clock is ahead of this one
let machines = [];
let machineToken = "";
const REFRESH_INTERVAL = 4000, MOST_LEASES = 100, MOST_LOGINS = 25, MOST_UNACCEPTED = 10;
const HEALTH_TIMEOUT = 10000, TIMEOUT = 100000; // the service works on a request for 90 seconds at most
const SHOW_WAIT_AFTER = 1000;
const LEASE_REFRESH = 20000; // a lease may be renewed or revoked before it expires
const at = (id) => document.getElementById(id);

// Requests

class Failed extends Error {
  constructor(message, path, status = 0, codes = []) {
    super(message);
    Object.assign(this, { path, status, codes });
  }
}

// Every request that waits for its answer: what it asks for, and since when. `showWaiting` shows the oldest.
const waiting = new Set();
async function fetched(address, options, name, timeout = TIMEOUT) {
  const wait = { name: `${options.method} ${name}`, since: Date.now() };
  waiting.add(wait);
  try {
    return await fetch(address, { ...options, signal: AbortSignal.timeout(timeout) });
  } catch (failure) {
    const isLate = failure.name === "TimeoutError";
    throw new Failed(isLate ? `the service did not answer within ${timeout / 1000} s` : "the service cannot be reached", name);
  } finally {
    waiting.delete(wait);
  }
}

async function ask(path, body, method = body ? "POST" : "GET", as = token) {
  const headers = { "X-Vault-Token": as, "X-Vault-Request": "true" };
  const options = { method, headers, body: body && JSON.stringify(body), cache: "no-store" };
  const isHealth = path === "sys/health";
  const name = path.split("?")[0];
  const answer = await fetched(`../v1/${path}`, options, name, isHealth ? HEALTH_TIMEOUT : TIMEOUT);
  const said = answer.status === 204 ? {} : await answer.json().catch(() => ({}));
  if (answer.ok || (isHealth && "initialized" in said)) return said;
  throw new Failed((said.errors ?? []).join("; ") || `the service answered ${answer.status}`, name, answer.status, said.codes ?? []);
}

async function askCloud(path, body) {
  const options = { method: body ? "POST" : "GET", headers: { "X-Cloudid-UI": "1" }, body: body && JSON.stringify(body) };
  const answer = await fetched(`cloud/${path}`, options, path.split("?")[0]);
  if (!answer.ok) throw new Failed(`the simulator answered ${answer.status}`, path, answer.status);
  return answer.json();
}

function showWaiting() {
  const now = Date.now();
  const long = [...waiting].filter(({ since }) => now - since > SHOW_WAIT_AFTER).sort((a, b) => a.since - b.since);
  at("waiting").hidden = !long.length;
  if (!long.length) return;
  const more = long.length > 1 ? ` (and for ${long.length - 1} more)` : "";
  at("waiting").textContent = `Waiting for ${long[0].name}${more}: ${span((now - long[0].since) / 1000)}`;
}

// Elements: every text of the service becomes text, never markup.

function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) element.setAttribute(key, value);
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}
const pill = (text, kind = "") => make("span", { class: `pill ${kind}` }, text);
const none = (text) => make("p", { class: "none" }, text);
const code = (text) => make("code", {}, breakable(text));
const soft = (text) => make("span", { class: "soft" }, text);
// Paths may break behind their slashes, codes behind their underscores, but no word breaks in its middle.
const breakable = (text) => String(text).split(/(?<=[/_,])/).flatMap((part) => [part, make("wbr")]).slice(0, -1);

function table(names, rows, kind = "") {
  const head = make("tr", {}, names.map((name) => make("th", { scope: "col" }, name)));
  const body = rows.map((row) => make("tr", {}, names.map((name, at) => make("td", { "data-name": name }, row[at] ?? ""))));
  return make("div", { class: "scroll" }, make("table", { class: kind }, make("thead", {}, head), make("tbody", {}, body)));
}

function shown(value) {
  if (value === null || value === undefined) return "–";
  if (Array.isArray(value)) return breakable(value.join(", ") || "–");
  return breakable(typeof value === "object" ? JSON.stringify(value) : value);
}

function span(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s >= 172800) return `${Math.floor(s / 86400)} days`;
  if (s >= 3600) return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
  return s >= 60 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${s} s`;
}
const left = (time) => (Date.parse(time) - Date.now() - skew) / 1000;
const ago = (time) => make("span", { title: time, class: "num" }, `${span(-left(time))} ago`);
const until = (time) => time ? make("span", { title: time, class: "num" }, `in ${span(left(time))}`) : "–";
const lastPart = (id) => id.split("/").filter(Boolean).pop() ?? id;

function fill(id, ...children) {
  const section = at(id);
  section.hidden = false;
  const place = section.querySelector("div");
  if (id === "logins" && place.querySelector(":focus-visible")) return; // a keyboard user is reading there
  place.replaceChildren(...children);
}

function say(state, kind = "") {
  const isWrong = kind === "bad" || kind === "warn";
  const icon = isWrong ? "icon-problem.svg" : "icon.svg";
  at("state").textContent = state;
  at("state").className = `pill ${kind}`;
  document.title = isWrong ? `⚠ ${state} – cloudid` : "cloudid";
  if (at("icon").getAttribute("href") !== icon) at("icon").setAttribute("href", icon); // browsers fetch it each time
}

function warn(text) {
  at("notice").hidden = !text;
  if (at("notice").textContent !== text) at("notice").textContent = text; // screen readers read each change
}

// What could not be read is never shown as empty.

const unread = ({ status, message }) => status === 403 ? "not permitted" : `failed: ${message}`;
function notRead(failure) {
  const text = failure.status === 403 ? `Not permitted: this token may not read ${failure.path}.` : `Failed: ${failure.message}`;
  return [none(text), failure.status === 403 ? null : advised(failure.codes ?? [])].filter(Boolean);
}

// Cause and fix of each error code, from the table that the terminal and the log use too.
let advice = {};
fetched("codes.json", { method: "GET", cache: "no-cache" }, "codes.json").then((answer) => answer.json()).then((codes) => { advice = codes; }).catch(() => {});
function advised(codes, names = {}) {
  const row = codes.map((each) => advice[each]).find(Boolean);
  if (!row) return null;
  const filled = (text) => text.replace(/\b(MOUNT|ROLE|PATH)\b/g, (name) => names[name.toLowerCase()] || name);
  const marked = (text) => filled(text).split("`").map((part, number) => number % 2 ? code(part) : part);
  return make("div", { class: "advice" }, make("p", {}, "Cause: ", marked(row.cause)), make("p", {}, "Fix: ", marked(row.fix)));
}

// Fill a section by `work`. Return what failed, or null. A section that still waits is not asked for again.
const working = new Map();
async function show(id, work) {
  const mine = session;
  if (working.get(id) === mine) return null;
  working.set(id, mine);
  try {
    const made = await work();
    if (mine === session) fill(id, ...[made].flat());
    return null;
  } catch (failure) {
    if (mine === session) fill(id, ...notRead(failure));
    return failure;
  } finally {
    if (working.get(id) === mine) working.delete(id);
  }
}

// Health

let troubles = []; // the problems of health, for the mounts that they concern
async function health() {
  const said = await ask("sys/health");
  skew = said.server_time_utc ? Math.round((said.server_time_utc + .5) * 1000 - Date.now()) : 0;
  if (Math.abs(skew) < 2000) skew = 0;
  const codes = said.problems ?? [];
  troubles = said.problem_details ?? [];
  const count = said.problem_count ?? codes.length;
  if (!said.initialized || said.sealed) say("cannot serve", "bad");
  else if (count) say(count === 1 ? "1 problem" : `${count} problems`, "warn");
  else say("healthy", "good");
  const facts = soft(`cloudid ${said.cloudid_version} · the store answers in ${said.store_latency_ms} ms`);
  if (!count) return [none("No problems."), facts];
  if (troubles.length) return [table(["problem", "fix"], troubles.map((each) => [each.text, each.remedy])), facts];
  return [table(["problem"], codes.map((each) => [code(each)])), none("The texts are not permitted: this token may not read sys/health."), facts];
}

// Logins

const MARKS = { failed: ["✗", "bad"], undecided: ["?", "warn"], passed: ["✓", "good"] };
const LEGEND = "? is not decided: Azure was not asked, because an earlier check failed, or because only claims are known.";
const open = new Set(); // what is unfolded stays unfolded
function fold(key, summary, ...body) {
  const details = make("details", {}, make("summary", {}, summary), body);
  details.open = open.has(key);
  details.addEventListener("toggle", () => details.open ? open.add(key) : open.delete(key));
  return details;
}
function checksOf(checks, key) {
  const row = ({ verdict, check, expected, found }) => {
    const [mark, kind] = MARKS[verdict];
    return [[make("span", { class: `pill ${kind}`, role: "img", "aria-label": verdict, title: verdict }, mark), " ", code(check)], shown(expected), shown(found)];
  };
  const rows = (verdict) => checks.filter((check) => check.verdict === verdict).map(row);
  const tableOf = (some) => table(["check", "expected", "found"], some, "checks");
  const [failed, undecided, passed] = [rows("failed"), rows("undecided"), rows("passed")];
  return [failed.length + undecided.length ? tableOf([...failed, ...undecided]) : null,
    undecided.length ? make("p", { class: "legend" }, LEGEND) : null,
    passed.length ? fold(`${key} passed`, soft(`${passed.length} checks passed`), tableOf(passed)) : null];
}

const names = ({ mount, role }) => ({ mount: mount.replace(/\/$/, ""), role });
const placeIn = (id) => /^\/subscriptions\/([^/]+)\/resourceGroups\/([^/]+)/i.exec(id ?? "")?.slice(1) ?? [];

// A machine by its name and resource group, and by its subscription where others have the same name and group.
function machineOf(id, others) {
  const [subscription, group] = placeIn(id);
  const [name, inGroup] = [lastPart(id), group ? ` in ${group}` : ""];
  const isAlike = (other) => other !== id && lastPart(other) === name && placeIn(other)[1] === group && placeIn(other)[0] !== subscription;
  return [make("strong", {}, name), soft(others.some(isAlike) ? `${inGroup}, ${subscription}` : inGroup)];
}

async function logins() {
  const { data } = await ask("sys/internal/recent-logins");
  const ids = data.logins.map((login) => login.resource_id || login.principal_id);
  const often = ({ count, time, remote_address: from }) => make("span", { class: "soft when" }, count > 1 ? `${count} times, last ` : "", ago(time), ` from ${from}`);
  const unaccepted = data.unaccepted.map((refusal) => {
    const key = ["unaccepted", refusal.mount, refusal.remote_address, ...refusal.codes].join(" ");
    const summary = [pill("refused", "bad"), make("span", {}, "a token that was not accepted"), code(refusal.codes.join(", ")), often(refusal)];
    return fold(key, summary, make("div", { class: "inside" }, advised(refusal.codes, names(refusal)), checksOf(refusal.checks, key)));
  });
  const accepted = data.logins.map((login) => {
    const id = login.resource_id || login.principal_id;
    const key = [login.verdict, login.role, login.principal_id, login.resource_id, ...login.codes].join(" ");
    const isRefused = login.verdict === "refused";
    const summary = [pill(login.verdict, isRefused ? "bad" : "good"), make("span", {}, machineOf(id, ids)),
      make("span", {}, "as ", code(login.role)), isRefused ? code(login.codes.join(", ")) : null, often(login)];
    return fold(key, summary.filter(Boolean), make("div", { class: "inside" }, make("p", { class: "soft" }, breakable(id)),
      advised(login.codes, names(login)), checksOf(login.checks, key), isRefused ? retry(login) : null));
  });
  const hidden = Math.max(0, accepted.length - MOST_LOGINS) + Math.max(0, unaccepted.length - MOST_UNACCEPTED);
  const rows = [...accepted.slice(0, MOST_LOGINS), ...unaccepted.slice(0, MOST_UNACCEPTED)];
  if (!rows.length) return none("No login has reached this node since it started.");
  return [...rows, hidden ? none(`${hidden} more are not shown.`) : null].filter(Boolean);
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

const LEASES = new Map(), HOLDERS = new Map();
async function leases() {
  const known = await leaseIds();
  const ids = known.slice(0, MOST_LEASES);
  for (const id of LEASES.keys()) if (!ids.includes(id)) LEASES.delete(id);
  await Promise.all(ids.map(async (id) => {
    const seen = LEASES.get(id);
    if (seen?.expire_time && left(seen.expire_time) >= 5 && Date.now() - seen.at < LEASE_REFRESH) return;
    const found = await ask("sys/leases/lookup", { lease_id: id }).catch((failure) => ({ failure }));
    if (found.failure?.codes.includes("lease_not_found")) LEASES.delete(id);
    else LEASES.set(id, { id, ...found.data, failure: found.failure, at: Date.now() });
  }));
  if (!LEASES.size) return none("No leases.");
  const accessors = new Set([...LEASES.values()].map(({ accessor }) => accessor).filter(Boolean));
  for (const accessor of HOLDERS.keys()) if (!accessors.has(accessor)) HOLDERS.delete(accessor);
  await Promise.all([...accessors].filter((accessor) => !HOLDERS.has(accessor)).map(async (accessor) => {
    HOLDERS.set(accessor, await ask("auth/token/lookup-accessor", { accessor }).then(({ data }) => holderOf(data), unread));
  }));
  const rows = [...LEASES.values()].sort((a, b) => Date.parse(a.expire_time) - Date.parse(b.expire_time)).map(leaseRow);
  const more = known.length > ids.length ? none(`There are more: these are the first ${MOST_LEASES} by name.`) : null;
  return [more, table(["lease", "holder", "since", "expires"], rows)].filter(Boolean);
}

function leaseRow(lease) {
  // Ids begin with their time: those of one hour differ at their ends.
  const name = code(lease.id.replace(/[^/]+$/, (end) => `…${end.slice(-8)}`));
  if (lease.failure) return [name, unread(lease.failure)];
  const state = lease.revoking ? pill(lease.revoke_error ? "stuck" : "ending", lease.revoke_error ? "bad" : "warn") : null;
  const holder = lease.accessor === undefined ? "not permitted" : HOLDERS.get(lease.accessor) ?? "a batch token, or one that has ended";
  const total = (Date.parse(lease.expire_time) - Date.parse(lease.last_renewal ?? lease.issue_time)) / 1000;
  const bar = make("meter", { min: 0, max: total, value: left(lease.expire_time), "aria-label": "time left" });
  const ends = make("span", { "data-ends": lease.expire_time, "data-id": lease.id }, bar, " ", make("span", { class: "num" }, ""));
  return [[name, " ", state], holder, ago(lease.issue_time), ends];
}

// Who holds a token: the machine that logged in, otherwise the token's display name.
function holderOf({ display_name: name, meta }) {
  const machine = meta?.vm_name || meta?.vmss_name || (meta?.resource_id && lastPart(meta.resource_id));
  return machine ? `${machine} in ${meta.resource_group_name}, as ${meta.role}` : name;
}

function count() {
  for (const cell of document.querySelectorAll("[data-ends]")) {
    const seconds = left(cell.dataset.ends);
    cell.querySelector("meter").value = Math.max(0, seconds);
    cell.querySelector(".num").textContent = seconds > 0 ? span(seconds) : "being removed";
  }
}

// Nodes, mounts, rotations

async function nodes() {
  const { data } = await ask("sys/ha-status");
  return table(["node", "seen", ""], data.nodes.map((node) => [
    [node.hostname || "this node", " ", soft(node.version)], ago(node.last_echo), node.background_node ? pill("leads", "good") : null]));
}

let mounted = Promise.resolve([]); // the paths of the mounts that can have a root credential
function mounts() {
  const read = (path, prefix) => ask(path).then(({ data }) => Object.entries(data).map(([name, mount]) => [`${prefix}${name}`, mount]));
  const all = Promise.all([read("sys/auth", "auth/"), read("sys/mounts", "")]).then((both) => both.flat());
  mounted = all.then((found) => found.filter(([, { type }]) => type === "cloud" || type === "azure").map(([path]) => path));
  mounted.catch(() => null); // `rotations` shows the failure
  return all.then((found) => table(["path", "type", found.some(([, mount]) => mount.description) ? "description" : ""], found.map(([path, mount]) => [code(path), mount.type, mount.description || ""])));
}

const PHASES = { idle: "good", overlapping: "good", adding: "warn", proving: "warn" };
const OF_CREDENTIALS = ["credential_refused", "provider_failing", "credential_at_risk"];
async function rotations() {
  const paths = await mounted;
  if (!paths.length) return none("No mount can have a root credential.");
  const rows = await Promise.all(paths.map((path) => ask(`${path}rotation`).then(({ data }) => rotationRow(path, data), (failure) => [code(path), unread(failure)])));
  return table(["mount", "phase", "last", "next", "secret expires"], rows);
}

function rotationRow(path, rotation) {
  if (!rotation.credential_source) return [code(path), "no root credential"];
  const concerns = troubles.filter((each) => each.mount === path.replace(/\/$/, "") && OF_CREDENTIALS.includes(each.code));
  const texts = concerns.length ? concerns.map((each) => each.text) : [rotation.last_error].filter(Boolean);
  const phase = texts.length ? pill("failing", "bad") : pill(rotation.phase, PHASES[rotation.phase] ?? "warn");
  return [code(path), [phase, texts.map((text) => make("p", {}, text))],
    rotation.last_rotation ? ago(rotation.last_rotation) : "never", until(rotation.next_rotation), until(rotation.expires)];
}

// Refresh

async function refresh() {
  const mine = session;
  if (!token || working.get("health") === mine) return;
  const failure = await show("health", health); // also for a tab in the background, whose title shows the state
  if (mine !== session) return;
  warn(failure ? `No answer from the service: ${failure.message}. The page shows the last state it read.` : "");
  if (failure) return say("no answer", "bad");
  if (document.hidden) return;
  const cards = [show("logins", logins), show("leases", leases), show("nodes", nodes), show("mounts", mounts),
    show("rotations", rotations), machines.length ? showCloud() : null];
  count();
  const failures = await Promise.all(cards);
  count();
  if (failures.some((each) => each?.status === 403)) await forgetIfEnded(mine);
}

async function forgetIfEnded(mine) {
  const failure = await ask("auth/token/lookup-self").then(() => null, (failed) => failed);
  if (mine === session && failure?.status === 403) forget("This token has ended. Sign in with another one.");
}

function forget(text) {
  token = machineToken = "";
  session += 1;
  for (const kept of [LEASES, HOLDERS, open]) kept.clear();
  for (const section of document.querySelectorAll("section")) section.hidden = true;
  for (const place of document.querySelectorAll("section > div:not(.row), #objects")) place.replaceChildren();
  at("why").reset();
  at("sign-in").hidden = false;
  at("forget").hidden = true;
  say("not signed in");
  warn(text);
  at("token").focus();
}

at("sign-in").addEventListener("submit", async (event) => {
  event.preventDefault();
  token = at("token").value.trim();
  at("token").value = "";
  session += 1;
  try {
    await ask("auth/token/lookup-self");
  } catch (failure) {
    const refused = "This token is not valid: it is unknown, has ended, or may not read auth/token/lookup-self.";
    return forget(failure.status === 403 ? refused : `Signing in failed: ${failure.message}`);
  }
  at("notice").hidden = at("sign-in").hidden = true;
  at("forget").hidden = at("explain").hidden = false;
  machines = (await askCloud("simulator/world").catch(() => null))?.machines ?? [];
  if (machines.length) {
    at("cloud").hidden = false;
    at("machine").replaceChildren(...machines.map(({ name }) => make("option", name === "web" ? { selected: "" } : {}, name)));
  }
  at("main").focus();
  await refresh();
});
at("forget").addEventListener("click", () => forget(""));

// Explain a login

// The fields of a login that name its machine, from the token's claims, as `cloudid login` sends them.
function placeOf(claims) {
  const id = String(claims.xms_az_rid || claims.xms_mirid || "");
  const [, subscription_id, resource_group_name, type, name] = /^\/subscriptions\/([^/]+)\/resourceGroups\/([^/]+)\/providers\/([^/]+\/[^/]+)\/(.+)$/i.exec(id) ?? [];
  if (!name || /^microsoft\.managedidentity\/userassignedidentities$/i.test(type)) return {};
  const place = { subscription_id, resource_group_name };
  if (/^microsoft\.compute\/virtualmachines$/i.test(type) && !name.includes("/")) return { ...place, vm_name: name };
  if (/^microsoft\.compute\/virtualmachinescalesets$/i.test(type) && !name.includes("/")) return { ...place, vmss_name: name };
  return { ...place, resource_id: id };
}

function claimsOf(jwt) {
  try {
    const bytes = atob(jwt.split(".")[1].replace(/-/g, "+").replace(/_/g, "/"));
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(bytes, (letter) => letter.charCodeAt(0)))) ?? {};
  } catch {
    return {}; // the service says what is wrong with the token
  }
}

// What was pasted, as a request to `explain`: a token, the body of a login or of an earlier request, or claims.
function pasted(text) {
  if (!text.startsWith("{")) return { ...placeOf(claimsOf(text)), jwt: text };
  const given = JSON.parse(text);
  if (typeof given.access_token === "string") return { ...placeOf(claimsOf(given.access_token)), jwt: given.access_token };
  if (typeof given.jwt === "string") return { ...placeOf(claimsOf(given.jwt)), ...given };
  if (given.claims && typeof given.claims === "object") return { ...placeOf(given.claims), ...given };
  return { ...placeOf(given), claims: given };
}

async function explain() {
  const fields = Object.fromEntries([...new FormData(at("why"))].map(([key, value]) => [key, value.trim()]));
  const place = at("explanation");
  const mine = session;
  let body;
  try {
    body = { ...pasted(fields.login), role: fields.role };
  } catch {
    return place.replaceChildren(none("This is neither a token nor valid JSON."));
  }
  try {
    const { data } = await ask(`${fields.mount.replace(/\/$/, "")}/explain`, body);
    if (mine !== session) return;
    const kind = { admitted: "good", refused: "bad" }[data.verdict] ?? "warn";
    const machine = FIELDS.filter((name) => body[name]);
    const lacks = data.verdict === "undecided" ? none("No check failed, but only Azure can decide some of them. Paste the machine's token to have them checked.") : null;
    place.replaceChildren(...[make("p", {}, pill(data.verdict, kind), " ", code(data.codes.join(", "))), lacks, advised(data.codes, names(fields)),
      machine.length ? make("p", { class: "soft" }, "Machine: ", machine.map((name) => body[name]).join(", ")) : null,
      ...checksOf(data.checks, "explained")].filter(Boolean));
  } catch (failure) {
    if (mine === session) place.replaceChildren(...[none(failure.status === 403 ? "Not permitted: explain needs update and sudo." : `Failed: ${failure.message}`),
      advised(failure.codes, names(fields))].filter(Boolean));
  }
}
at("why").addEventListener("submit", (event) => { event.preventDefault(); explain(); });

// A pasted body of a login has its own role.
at("why").elements.login.addEventListener("input", ({ target }) => {
  try {
    const { role } = pasted(target.value.trim());
    if (typeof role === "string") at("why").elements.role.value = role;
  } catch { /* not complete yet */ }
});

// Explain a refused login again, from what its checks found. Its token is not known, but its lifetime is.
const CLAIMS = { iss: "iss", tid: "tid", aud: "aud", idtyp: "bound_token_types", xms_mirid: "bound_identity_ids", groups: "bound_group_ids" };
const FIELDS = ["subscription_id", "resource_group_name", "vm_name", "vmss_name", "resource_id"];
function bodyOf(login) {
  const found = new Map(login.checks.map((check) => [check.check, check.found]));
  const lifetime = (Date.parse(found.get("exp")) - Date.parse(login.time)) / 1000;
  const claims = { oid: login.principal_id, exp: Math.round((Date.now() + skew) / 1000 + (lifetime || 3600)) };
  if (login.resource_id) claims.xms_az_rid = login.resource_id;
  for (const [claim, check] of Object.entries(CLAIMS)) if (found.get(check)) claims[claim] = found.get(check);
  const body = { claims, remote_address: login.remote_address };
  for (const field of FIELDS.slice(0, 2)) if (found.has("form") && !found.get("form").includes(field)) body[field] = "";
  for (const field of FIELDS) if (found.get(field)) body[field] = found.get(field);
  return body;
}
function retry(login) {
  const button = make("button", { type: "button", class: "plain" }, "Try again with this role");
  button.addEventListener("click", async () => {
    const { mount, role, login: text } = at("why").elements;
    mount.value = names(login).mount;
    role.value = login.role;
    text.value = JSON.stringify(bodyOf(login), null, 1);
    role.focus();
    at("explain").scrollIntoView();
    await explain();
  });
  return button;
}

// The simulated Azure of a development server

async function faults(rules) {
  const isBroken = (await askCloud("simulator/faults", rules)).length > 0;
  at("break").dataset.broken = String(isBroken);
  at("break").textContent = isBroken ? "Repair Azure" : "Break Azure";
  return isBroken;
}

async function showCloud() {
  try {
    await faults();
    const ledger = await askCloud("simulator/ledger");
    const kinds = [...new Set(ledger.map((entry) => entry.kind))];
    const existing = (kind) => ledger.filter((entry) => entry.kind === kind && entry.deleted_at === null).length;
    const pills = kinds.filter(existing).map((kind) => pill(`${existing(kind)} × ${kind}`));
    const removed = ledger.filter((entry) => entry.deleted_at !== null).length;
    at("objects").replaceChildren(soft("Created by cloudid:"), ...(pills.length ? pills : [soft("nothing")]), soft(`· removed again: ${removed}`));
  } catch (failure) {
    at("objects").replaceChildren(soft(`Created by cloudid: failed: ${failure.message}`));
  }
}

const ACTIONS = {
  "log-in": async () => {
    const mine = session;
    const machine = machines.find(({ name }) => name === at("machine").value);
    const query = "api-version=2018-02-01&resource=https://management.azure.com/";
    const identity = await askCloud(`machines/${machine.name}/metadata/identity/oauth2/token?${query}`);
    const login = { role: "web", ...pasted(identity.access_token) };
    const { auth } = await ask("auth/cloud/login", login, "POST", "");
    if (mine === session) machineToken = auth.client_token;
    return `${machine.name} is logged in for ${span(auth.lease_duration)}, with the policies ${auth.policies.join(", ")}.`;
  },
  issue: async () => {
    const issued = await ask("cloud/creds/reader", undefined, "GET", machineToken || token);
    return `${machineToken ? "The machine" : "Your token"} holds credentials for ${span(issued.lease_duration)}: ${issued.lease_id}`;
  },
  break: async () => {
    const fault = (family) => ({ match: { family }, times: null, action: { status: 503, code: "ServiceUnavailable", message: "broken" } });
    const isBroken = await faults(at("break").dataset.broken === "true" ? [] : ["graph", "arm", "login"].map(fault));
    return isBroken ? "Azure now refuses every call." : "Azure works again.";
  },
};
for (const [id, work] of Object.entries(ACTIONS)) {
  at(id).addEventListener("click", async () => {
    const mine = session;
    at(id).disabled = true;
    try {
      const text = await work();
      if (mine === session) at("happened").textContent = text;
    } catch (failure) {
      if (mine !== session) return;
      const text = failure.codes?.length ? `${failure.message} (${failure.codes.join(", ")})` : failure.message;
      at("happened").replaceChildren(...[none(text), advised(failure.codes ?? [], { mount: "cloud", role: "reader" })].filter(Boolean));
    } finally {
      at(id).disabled = false;
    }
    await refresh();
  });
}

setInterval(refresh, REFRESH_INTERVAL);
setInterval(() => { count(); showWaiting(); }, 500);
document.addEventListener("visibilitychange", refresh);
at("token").focus();
