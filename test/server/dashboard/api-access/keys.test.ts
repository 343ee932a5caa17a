import { generateKeyPairSync } from "node:crypto";
import test from "ava";
import { isProblem } from "../../../harness/clients/api.ts";
import { browserOf, createTeam } from "../../../harness/clients/dashboard.ts";
import { advanceClock } from "../../../harness/clock.ts";
import { startTestService } from "../../../harness/service.ts";

const service = await startTestService();

test.after.always(() => service.close());

type KeyBody = { id: string; thumbprint: string; created_at: string; last_used_at: string | null };
type ClientBody = { keys: KeyBody[]; secrets: unknown[] };

const newKey = () => generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey;
const jwk = () => newKey().export({ format: "jwk" });
const pem = () => newKey().export({ type: "spki", format: "pem" }).toString();

async function withClient() {
  const team = await createTeam(service, "growth");
  const path = `${team.base}/client`;
  const look = async () => (await team.owner.api.send<ClientBody>("GET", path)).body;
  const add = (key: unknown) => team.owner.api.send<KeyBody>("POST", `${path}/keys`, { json: { key } });
  return { ...team, path, look, add };
}

test("keys are added as a JWK or PEM, listed by thumbprint, and removed", async (t) => {
  const { owner, path, look, add } = await withClient();
  const [first, second] = [await add(jwk()), await add(pem())];
  t.deepEqual([first.status, second.status], [201, 201]);
  t.deepEqual(Object.keys(first.body), ["id", "thumbprint", "created_at", "last_used_at"]);
  t.deepEqual((await look()).keys, [second.body, first.body]);
  t.is((await owner.api.send("DELETE", `${path}/keys/${first.body.id}`)).status, 204);
  t.deepEqual((await look()).keys, [second.body]);
  isProblem(t, await owner.api.send("DELETE", `${path}/keys/${first.body.id}`), {
    status: 404,
    code: "not_found",
  });
});

test("a third key, a key twice, and what is not a public key are refused", async (t) => {
  const { look, add } = await withClient();
  const key = jwk();
  t.is((await add(key)).status, 201);
  isProblem(t, await add(key), { status: 409, code: "duplicate_key" });
  isProblem(t, await add({ ...key, kid: "another name" }), { status: 409, code: "duplicate_key" });
  t.is((await add(pem())).status, 201);
  isProblem(t, await add(jwk()), { status: 409, code: "key_limit" });
  for (const wrong of ["lgs_secret", "", { kty: "oct", k: "c2VjcmV0" }]) {
    isProblem(t, await add(wrong), { status: 422, code: "invalid_key", fields: ["key"] });
  }
  t.is((await add(7)).status, 422);
  t.is((await look()).keys.length, 2);
});

test("removing all secrets leaves none, and a rotation creates one without a previous one", async (t) => {
  const { owner, path, look } = await withClient();
  t.is((await owner.api.send("DELETE", `${path}/secrets`)).status, 204);
  t.deepEqual((await look()).secrets, []);
  t.is((await owner.api.send("DELETE", `${path}/secrets`)).status, 204);
  const { body } = await owner.api.send<{ client_secret: string; previous_expires_at: string | null }>(
    "POST",
    `${path}/rotate`,
    { json: {} },
  );
  t.regex(body.client_secret, /^lgs_/);
  t.is(body.previous_expires_at, null);
  t.is((await look()).secrets.length, 1);
});

test("members can neither add nor remove keys, nor remove secrets", async (t) => {
  const { member, path, add, look } = await withClient();
  const { body } = await add(jwk());
  const before = await look();
  for (const [method, to, json] of [
    ["POST", `${path}/keys`, { key: jwk() }],
    ["DELETE", `${path}/keys/${body.id}`],
    ["DELETE", `${path}/secrets`],
  ] as const) {
    t.is((await member.api.send(method, to, json ? { json } : {})).status, 403, `${method} ${to}`);
  }
  t.deepEqual(await look(), before);
});

test("another organization's key can't be removed", async (t) => {
  const mine = await withClient();
  const other = await withClient();
  const { body } = await other.add(jwk());
  t.is((await mine.owner.api.send("DELETE", `${mine.path}/keys/${body.id}`)).status, 404);
  t.is((await other.look()).keys.length, 1);
});

test("in a browser, a rejected private key is explained at the field and not sent back", async (t) => {
  const { owner, path } = await withClient();
  const { browser } = await browserOf(service, owner);
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const key = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  const form = await browser.open(`${service.url}${path}/keys/new`);
  const page = await browser.press(form, "Add key", { key });
  t.is(page.status, 422);
  t.regex(page.html.querySelector("#key-error")?.text ?? "", /^Must be the public key, not the private one/);
  t.is(page.html.querySelector("#key")?.text, "");
  t.notRegex(page.html.toString(), /PRIVATE KEY/);
});

type Audit = { data: { type: string; data: object }[] };

test("an owner requires DPoP and stops requiring it; both are audited", async (t) => {
  const { base, owner } = await createTeam(service);
  const path = `${base}/client/require-dpop`;
  const isRequired = async () =>
    (await owner.api.get<{ require_dpop: boolean }>(`${base}/client`)).body.require_dpop;
  t.false(await isRequired());
  for (const require_dpop of [true, true, false]) {
    const reply = await owner.api.send("PUT", path, { json: { require_dpop } });
    t.is(reply.status, 200);
    t.deepEqual(reply.body as unknown, { require_dpop });
    t.is(await isRequired(), require_dpop);
  }
  const type = "organization.dpop_requirement_changed";
  const { body } = await owner.api.get<Audit>(`${base}/audit?type=${type}`);
  t.deepEqual(
    body.data.map(({ data }) => data),
    [{ required: false }, { required: true }],
  );
});

test("an owner turns on FAPI 2.0 once the client qualifies; then it gets no secret", async (t) => {
  const { owner, admin, base, path, add, look } = await withClient();
  const set = (fapi: boolean, { api } = owner) => api.send("PUT", `${path}/fapi`, { json: { fapi } });
  isProblem(t, await set(true), { status: 409, code: "fapi_conflict" });
  await add(jwk());
  isProblem(t, await set(true), { status: 409, code: "fapi_conflict" });
  await owner.api.send("DELETE", `${path}/secrets`);
  isProblem(t, await set(true, admin), { status: 403, code: "role_required" });
  t.deepEqual((await set(true)).body as unknown, { fapi: true });
  t.like(await look(), { fapi: true, secrets: [] });
  const rotated = await owner.api.send("POST", `${path}/rotate`, { json: {} });
  isProblem(t, rotated, { status: 409, code: "fapi_conflict" });
  const json = { redirect_uris: ["http://localhost/callback"] };
  isProblem(t, await owner.api.send("PUT", `${path}/redirect-uris`, { json }), {
    status: 409,
    code: "fapi_conflict",
  });
  const [{ id }] = ((await look()) as unknown as { keys: [{ id: string }] }).keys;
  const removed = await owner.api.send("DELETE", `${path}/keys/${id}`, { json: {} });
  isProblem(t, removed, { status: 409, code: "fapi_conflict" });
  t.deepEqual((await set(false)).body as unknown, { fapi: false });
  const { body } = await owner.api.get<Audit>(`${base}/audit?type=client.fapi_changed`);
  t.like(
    body.data.map(({ data }) => data),
    [{ enabled: false }, { enabled: true }],
  );
});

test("in a browser, the page says what the client has to change first", async (t) => {
  const { owner, path, add } = await withClient();
  await add(jwk());
  const { browser } = await browserOf(service, owner);
  const open = () => browser.open(`${service.url}${path}/security`);
  const refused = await browser.press(await open(), "Turn on FAPI 2.0");
  t.is(refused.status, 409);
  t.regex(refused.text, /must not have secrets\. Remove them first\./);
  await owner.api.send("DELETE", `${path}/secrets`);
  const on = await browser.press(await open(), "Turn on FAPI 2.0");
  t.regex(on.text, /The client now follows FAPI 2\.0\./);
  t.notRegex((await browser.open(`${service.url}${path}`)).text, /Create secret/);
});

const INVALID: [what: string, json: object, code: string][] = [
  ["no value", {}, "invalid_require_dpop"],
  ["a word", { require_dpop: "true" }, "invalid_require_dpop"],
  ["an unknown field", { require_dpop: true, more: 1 }, "unknown_field"],
];
for (const [what, json, code] of INVALID) {
  test(`${what} is rejected`, async (t) => {
    const { base, owner } = await createTeam(service);
    const reply = await owner.api.send("PUT", `${base}/client/require-dpop`, { json });
    t.is(reply.status, 422);
    t.is(reply.body.code, code, reply.text);
  });
}

test("only owners may change it; admins see it", async (t) => {
  const { base, admin, member, stranger } = await createTeam(service);
  for (const [user, status, code] of [
    [admin, 403, "role_required"],
    [member, 403, "role_required"],
    [stranger, 404, "not_found"],
  ] as const) {
    const reply = await user.api.send("PUT", `${base}/client/require-dpop`, { json: { require_dpop: true } });
    isProblem(t, reply, { status, code });
  }
  const { page } = await browserOf(service, admin).then(async ({ browser }) => ({
    page: await browser.open(`${service.url}${base}/client/security`),
  }));
  t.regex(page.text, /Only owners can change this\./);
  t.notRegex(page.text, /Require DPoP</);
});

test.serial("in a browser, the owner presses a button, after a recent sign-in", async (t) => {
  const { base, owner } = await createTeam(service);
  const { browser } = await browserOf(service, owner);
  const page = await browser.open(`${service.url}${base}/client/security`);
  const required = await browser.press(page, "Require DPoP");
  t.regex(required.text, /DPoP is now required\./);
  const optional = await browser.press(required, "Stop requiring DPoP");
  t.regex(optional.text, /DPoP is no longer required\./);
  advanceClock(11 * 60_000);
  const again = await browser.press(optional, "Require DPoP");
  t.truthy(again.html.querySelector("#password"), "the sign-in form");
});
