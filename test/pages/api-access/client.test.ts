import { generateKeyPairSync } from "node:crypto";
import test from "ava";
import { isMissing, isProblem } from "../../harness/clients/api.ts";
import { createTeam, createTeamWithClient, openAs } from "../../harness/clients/dashboard.ts";
import { alertOn, follow, isMarked, textsOn, typedIn } from "../../harness/clients/pages.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();

type KeyBody = { id: string; thumbprint: string; created_at: string; last_used_at: string | null };
type ClientBody = {
  client_id: string;
  redirect_uris: string[];
  secrets: { id: string; last4: string }[];
  keys: KeyBody[];
  endpoints: Record<string, string>;
};
type Rotation = { client_id: string; client_secret: string };

async function withClient() {
  const team = await createTeamWithClient(service);
  const path = `${team.base}/client`;
  const { api } = team.owner;
  return {
    ...team,
    path,
    look: () => api.get<ClientBody>(path),
    send: (method: string, below: string, json?: object) =>
      api.send<Rotation>(method, path + below, json && { json }),
    add: (key: unknown) => api.send<KeyBody>("POST", `${path}/keys`, { json: { key } }),
  };
}

test("an organization that has never been on a paid plan has no client", async (t) => {
  const { base, owner } = await createTeam(service, "free");
  const json = { name: "Deploy", issuer: "https://ci.example", subject: "job", scopes: ["links:read"] };
  for (const refused of [
    await owner.api.get(`${base}/client`),
    await owner.api.get(`${base}/client/quick-start`),
    await owner.api.send("POST", `${base}/workload-identity`, { json }),
  ])
    isProblem(t, refused, { status: 404, code: "no_client" });
});

test("each tab of API access is a page that marks it, and that of the endpoints has what programs get", async (t) => {
  const { owner, path } = await withClient();
  const { browser, page } = await openAs(service, owner, path);
  for (const tab of "Public keys,Workload identity,Redirect URIs,Name and homepage,Security".split(","))
    t.deepEqual(textsOn(await follow(browser, page, tab), ".tabs [aria-current]"), [tab]);
  const { body } = await owner.api.get<Record<string, string>>(`${path}/endpoints`);
  const endpoints = await follow(browser, page, "Endpoints");
  t.deepEqual(textsOn(endpoints, ".copyable code"), Object.values(body));
});

test("every invalid redirect URI is listed, and the saved list doesn't change", async (t) => {
  const { send, look } = await withClient();
  const valid = ["https://app.example.com/callback", "com.example.app:/callback"];
  const invalid = ["javascript:alert(1)", "https://app.example.com/#fragment", "/callback"];
  const reply = await send("PUT", "/redirect-uris", { redirect_uris: [valid[0], ...invalid] });
  const fields = [1, 2, 3].map((index) => `redirect_uris.${index}`);
  isProblem(t, reply, { status: 422, code: "invalid_redirect_uris", fields });
  t.deepEqual((await look()).body.redirect_uris, []);
  for (const redirect_uris of [valid, []]) {
    await send("PUT", "/redirect-uris", { redirect_uris });
    t.deepEqual((await look()).body.redirect_uris, redirect_uris);
  }
});

test("redirect URIs are added and removed one at a time, also concurrently", async (t) => {
  const { owner, admin, path, look, send, client } = await withClient();
  const add = (redirect_uri: string, { api } = owner) =>
    api.send<object>("POST", `${path}/redirect-uris`, { json: { redirect_uri } });
  const { body } = await add("https://a.example/cb");
  t.deepEqual(body, { client_id: client.clientId, redirect_uris: ["https://a.example/cb"] });
  await Promise.all([add("https://b.example/cb"), add("https://c.example/cb", admin)]);
  const all = ["a", "b", "c"].map((name) => `https://${name}.example/cb`);
  t.deepEqual((await look()).body.redirect_uris.toSorted(), all);
  const twice = { status: 422, code: "invalid_redirect_uri", fields: ["redirect_uri"] };
  isProblem(t, await add("https://a.example/cb"), twice);
  for (const redirect_uri of ["https://a.example/cb", "https://unknown.example/"])
    t.is((await send("DELETE", "/redirect-uris", { redirect_uri })).status, 200);
  t.is((await look()).body.redirect_uris.length, 2);
});

test("in a browser, a secret can be rotated, any but the newest can be revoked, and redirect URIs can be added and removed", async (t) => {
  const { owner, path, client, look, send } = await withClient();
  const { browser, page: form } = await openAs(service, owner, `${path}/rotate`);
  const url = service.url + path;
  for (const overlap_hours of ["", "170"])
    t.is((await browser.press(form, "Rotate secret", { overlap_hours })).status, 422);
  const rotated = await browser.press(form, "Rotate secret", { overlap_hours: "12" });
  const [clientId = "", clientSecret = ""] = textsOn(rotated, ".copyable code");
  t.truthy(await service.token({ clientId, clientSecret }));
  t.truthy(await service.token(client));

  const [newest] = (await look()).body.secrets;
  isProblem(t, await send("DELETE", `/secrets/${newest?.id}`), { status: 409, code: "newest_secret" });
  const page = await browser.open(url);
  t.false(page.text.includes(clientSecret));
  const button = page.html.querySelectorAll("button").find(({ text }) => text.startsWith("Revoke"));
  await browser.submit(page, {}, button?.closest("form"));
  await t.throwsAsync(service.token(client), { message: /invalid_client/ });
  t.truthy(await service.token({ clientId, clientSecret }));

  const uris = await browser.open(`${url}/redirect-uris`);
  const rejected = await browser.press(uris, "Add redirect URI", { redirect_uri: "http://b.example/cb" });
  t.is(rejected.status, 422);
  isMarked(t, rejected, "redirect_uri", /^Must use https/);
  t.is(alertOn(rejected), "Fix the errors below and try again.");
  t.is(typedIn(rejected, "redirect_uri"), "http://b.example/cb");
  const added = await browser.press(rejected, "Add redirect URI", { redirect_uri: " https://a.example/cb" });
  t.deepEqual(textsOn(added, "td code"), ["https://a.example/cb"]);
  const removed = await browser.press(added, "Remove https://a.example/cb");
  t.regex(removed.text, /No redirect URIs yet/);

  const leak = { kind: "compromised", overlap_hours: "24" };
  const compromised = await browser.press(form, "Rotate secret", leak);
  t.regex(compromised.text, /all tokens of this client have been revoked/);
  await t.throwsAsync(service.token({ clientId, clientSecret }), { message: /invalid_client/ });
});

const newKey = () => generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey;
const jwk = () => newKey().export({ format: "jwk" });

test("two public keys are added at most, as a JWK or PEM, listed by thumbprint, and removed", async (t) => {
  const { send, look, add } = await withClient();
  const key = jwk();
  const first = await add(key);
  isProblem(t, await add(key), { status: 409, code: "duplicate_key" });
  const second = await add(newKey().export({ type: "spki", format: "pem" }).toString());
  t.deepEqual([first.status, second.status], [201, 201]);
  t.deepEqual(Object.keys(first.body), ["id", "thumbprint", "created_at", "last_used_at"]);
  isProblem(t, await add(jwk()), { status: 409, code: "key_limit" });
  isProblem(t, await add(7), { status: 422, code: "invalid_key", fields: ["key"] });
  t.deepEqual((await look()).body.keys, [second.body, first.body]);
  t.is((await send("DELETE", `/keys/${first.body.id}`)).status, 204);
  t.deepEqual((await look()).body.keys, [second.body]);
  isMissing(t, await send("DELETE", `/keys/${first.body.id}`));
});

test("in a browser, a rejected private key is explained at the field and not sent back", async (t) => {
  const { owner, path } = await withClient();
  const { browser, page: form } = await openAs(service, owner, `${path}/keys/new`);
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const key = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  const page = await browser.press(form, "Add key", { key });
  t.is(page.status, 422);
  t.regex(page.html.querySelector("#key-error")?.text ?? "", /^Must be the public key, not the private one/);
  t.is(page.html.querySelector("#key")?.text, "");
  t.notRegex(page.html.toString(), /PRIVATE KEY/);
});
