import test from "ava";
import { isProblem } from "../../../harness/clients/api.ts";
import { browserOf, createTeam } from "../../../harness/clients/dashboard.ts";
import { isAcceptedByApi } from "../../../harness/clients/oauth.ts";
import { isMarked, typedIn } from "../../../harness/clients/pages.ts";
import { startTestService } from "../../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

type ClientBody = {
  client_id: string;
  redirect_uris: string[];
  secrets: { id: string; last4: string; expires_at: string | null; last_used_at: string | null }[];
  endpoints: Record<string, string>;
};
type Rotation = { client_id: string; client_secret: string; previous_expires_at: string };

/** Creates a team with a client, and returns its secret. */
async function withClient() {
  const team = await createTeam(service, "free");
  const { id } = team.organization;
  const change = await service.storage.organizations.setPlan(id, "growth", { id: team.owner.id });
  const client = change?.client;
  if (!client) throw new Error("no client");
  const path = `${team.base}/client`;
  return { ...team, client, path, look: () => team.owner.api.send<ClientBody>("GET", path) };
}

test("the client is shown with its endpoints and without secrets", async (t) => {
  const { client, look } = await withClient();
  const { body, text } = await look();
  t.is(body.client_id, client.clientId);
  t.deepEqual(body.redirect_uris, []);
  t.deepEqual(Object.keys(body.secrets[0] ?? {}), [
    "id",
    "last4",
    "created_at",
    "expires_at",
    "last_used_at",
    "callers",
  ]);
  t.is(body.secrets[0]?.last4, client.clientSecret.slice(-4));
  t.is(body.endpoints.token_endpoint, `${service.url}/oauth/token`);
  t.false(text.includes(client.clientSecret));
});

test("an organization that has never been on a paid plan has no client", async (t) => {
  const { base, owner } = await createTeam(service, "free");
  for (const path of ["/client", "/client/quick-start"]) {
    isProblem(t, await owner.api.send("GET", base + path), { status: 404, code: "no_client" });
  }
  isProblem(t, await owner.api.send("POST", `${base}/client/rotate`, { json: {} }), {
    status: 404,
    code: "no_client",
  });
  isProblem(t, await owner.api.send("PUT", `${base}/client/redirect-uris`, { json: { redirect_uris: [] } }), {
    status: 404,
    code: "no_client",
  });
});

test("a rotation returns the new secret once, and the old one stays valid during the overlap", async (t) => {
  const { client, owner, path, look } = await withClient();
  const before = Date.now();
  const { status, body } = await owner.api.send<Rotation>("POST", `${path}/rotate`, {
    json: { overlap_hours: 2 },
  });
  t.is(status, 200);
  t.deepEqual(Object.keys(body), ["client_id", "client_secret", "previous_expires_at"]);
  t.true(Date.parse(body.previous_expires_at) >= before + 2 * 3_600_000);
  t.truthy(await service.token(client));
  t.truthy(await service.token({ clientId: body.client_id, clientSecret: body.client_secret }));
  const { body: shown, text } = await look();
  t.is(shown.secrets.length, 2);
  t.false(text.includes(body.client_secret));
});

test("the overlap is 24 hours by default, and can be 0", async (t) => {
  const { client, owner, path } = await withClient();
  const usual = await owner.api.send<Rotation>("POST", `${path}/rotate`, { json: {} });
  const hours = (Date.parse(usual.body.previous_expires_at) - Date.now()) / 3_600_000;
  t.true(hours > 23.9 && hours <= 24, String(hours));
  await owner.api.send("POST", `${path}/rotate`, { json: { overlap_hours: 0 } });
  await t.throwsAsync(service.token(client), { message: /invalid_client/ });
});

test("rotating a compromised secret revokes it immediately, with every token", async (t) => {
  const { client, owner, path } = await withClient();
  const token = await service.token(client);
  const { body } = await owner.api.send<Rotation>("POST", `${path}/rotate`, { json: { compromised: true } });
  t.false(await isAcceptedByApi(service, token));
  await t.throwsAsync(service.token(client), { message: /invalid_client/ });
  t.truthy(await service.token({ clientId: body.client_id, clientSecret: body.client_secret }));
});

const WRONG_ROTATIONS: [json: object, code: string, field: string][] = [
  [{ overlap_hours: -1 }, "invalid_overlap_hours", "overlap_hours"],
  [{ overlap_hours: 168.1 }, "invalid_overlap_hours", "overlap_hours"],
  [{ overlap_hours: "24" }, "invalid_overlap_hours", "overlap_hours"],
  [{ overlap_hours: null }, "invalid_overlap_hours", "overlap_hours"],
  [{ overlap_hours: 1, compromised: true }, "invalid_overlap_hours", "overlap_hours"],
  [{ compromised: "yes" }, "invalid_compromised", "compromised"],
  [{ client_secret: "lgs_mine" }, "unknown_field", "client_secret"],
];

for (const [json, code, field] of WRONG_ROTATIONS) {
  test(`a rotation with ${JSON.stringify(json)} is rejected and changes nothing`, async (t) => {
    const { owner, path, look } = await withClient();
    const before = (await look()).body;
    const reply = await owner.api.send("POST", `${path}/rotate`, { json });
    isProblem(t, reply, { status: 422, code, fields: [field] });
    t.deepEqual((await look()).body, before);
  });
}

test("an old secret can be revoked early, the newest one can't", async (t) => {
  const { client, owner, path, look } = await withClient();
  const rotated = await owner.api.send<Rotation>("POST", `${path}/rotate`, { json: {} });
  const [newest, old] = (await look()).body.secrets;
  isProblem(t, await owner.api.send("DELETE", `${path}/secrets/${newest?.id}`), {
    status: 409,
    code: "newest_secret",
  });
  t.is((await owner.api.send("DELETE", `${path}/secrets/${old?.id}`)).status, 204);
  await t.throwsAsync(service.token(client), { message: /invalid_client/ });
  const { client_id: clientId, client_secret: clientSecret } = rotated.body;
  t.truthy(await service.token({ clientId, clientSecret }));
  t.is((await owner.api.send("DELETE", `${path}/secrets/${old?.id}`)).status, 404);
});

test("saving redirect URIs replaces the list", async (t) => {
  const { owner, path, look, client } = await withClient();
  const uris = ["https://app.example.com/callback", "http://localhost/callback", "com.example.app:/callback"];
  const { status, body } = await owner.api.send<object>("PUT", `${path}/redirect-uris`, {
    json: { redirect_uris: uris },
  });
  t.is(status, 200);
  t.deepEqual(body, { client_id: client.clientId, redirect_uris: uris });
  t.deepEqual((await look()).body.redirect_uris, uris);
  await owner.api.send("PUT", `${path}/redirect-uris`, { json: { redirect_uris: [] } });
  t.deepEqual((await look()).body.redirect_uris, []);
});

test("on the Free plan the page offers the plans instead of the quick start", async (t) => {
  const { base, owner } = await withClient();
  await owner.api.send("PUT", `${base}/plan`, { json: { plan: "free" } });
  const { browser } = await browserOf(service, owner);
  const { html } = await browser.open(`${service.url}${base}/client`);
  const links = html.querySelectorAll("main a.button").map(({ attributes }) => attributes.href);
  t.true(links.includes(`${base}/plan`), links.join());
  t.false(links.includes(`${base}/client/quick-start`), links.join());
});

test("every invalid redirect URI is listed, and the saved list doesn't change", async (t) => {
  const { owner, path, look } = await withClient();
  const redirect_uris = [
    "https://app.example.com/callback",
    "http://app.example.com/callback",
    "javascript:alert(1)",
    "https://app.example.com/#fragment",
    "/callback",
    "https://*.example.com/",
  ];
  const reply = await owner.api.send("PUT", `${path}/redirect-uris`, { json: { redirect_uris } });
  const fields = [1, 2, 3, 4, 5].map((index) => `redirect_uris.${index}`);
  isProblem(t, reply, { status: 422, code: "invalid_redirect_uris", fields });
  t.deepEqual((await look()).body.redirect_uris, []);
});

test("redirect URIs are added and removed one at a time, also concurrently", async (t) => {
  const { owner, admin, path, look, client } = await withClient();
  const add = (redirect_uri: string, { api } = owner) =>
    api.send<object>("POST", `${path}/redirect-uris`, { json: { redirect_uri } });
  const { body } = await add("https://a.example/cb");
  t.deepEqual(body, { client_id: client.clientId, redirect_uris: ["https://a.example/cb"] });
  await Promise.all([add("https://b.example/cb"), add("https://c.example/cb", admin)]);
  t.deepEqual((await look()).body.redirect_uris.toSorted(), [
    "https://a.example/cb",
    "https://b.example/cb",
    "https://c.example/cb",
  ]);
  isProblem(t, await add("https://a.example/cb"), {
    status: 422,
    code: "invalid_redirect_uri",
    fields: ["redirect_uri"],
  });
  for (const redirect_uri of ["https://a.example/cb", "https://unknown.example/"])
    t.is((await owner.api.send("DELETE", `${path}/redirect-uris`, { json: { redirect_uri } })).status, 200);
  t.is((await look()).body.redirect_uris.length, 2);
});

test("each tab of API access has an address of its own, which programs can read", async (t) => {
  const { base, owner, path, client } = await withClient();
  const { browser } = await browserOf(service, owner);
  const page = await browser.open(service.url + path);
  const tabs = page.html.querySelectorAll(".tabs a");
  t.deepEqual(
    tabs.map(({ text }) => text),
    [
      "Credentials",
      "Public keys",
      "Workload identity",
      "Redirect URIs",
      "Name and homepage",
      "Security",
      "Endpoints",
    ],
  );
  const titles = new Set<string | undefined>();
  for (const { text, attributes } of tabs) {
    const tab = await browser.open(service.url + attributes.href);
    t.is(tab.html.querySelector(".tabs [aria-current=page]")?.text, text);
    titles.add(tab.html.querySelector("title")?.text);
    t.is((await owner.api.get(attributes.href ?? "")).status, 200, text);
  }
  t.is(titles.size, tabs.length);
  const { body } = await owner.api.get<Record<string, string>>(`${path}/endpoints`);
  const endpoints = await browser.open(`${service.url}${path}/endpoints`);
  const copied = endpoints.html
    .querySelectorAll("[data-copy]")
    .map(({ attributes }) => attributes["data-copy"]);
  t.deepEqual(copied, Object.values(body));
  t.true(copied.includes(`${service.url}/v1/openapi.json`));
  t.is(page.html.querySelector("main [data-copy]")?.attributes["data-copy"], client.clientId);
  t.is((await browser.open(`${service.url}${base}/client/nothing`)).status, 404);
});

test("in a browser, a secret can be rotated and revoked, and redirect URIs can be added and removed", async (t) => {
  const { owner, path, client } = await withClient();
  const { browser } = await browserOf(service, owner);
  const url = service.url + path;
  const form = await browser.open(`${url}/rotate`);
  t.is((await browser.press(form, "Rotate secret", { overlap_hours: "" })).status, 422);
  t.is((await browser.press(form, "Rotate secret", { overlap_hours: "170" })).status, 422);
  const rotated = await browser.press(form, "Rotate secret", { overlap_hours: "12" });
  const [clientId = "", clientSecret = ""] = rotated.html
    .querySelectorAll(".copyable code")
    .map(({ text }) => text);
  t.truthy(await service.token({ clientId, clientSecret }));
  t.truthy(await service.token(client));

  const page = await browser.open(url);
  t.false(page.text.includes(clientSecret));
  const button = page.html.querySelectorAll("button").find(({ text }) => text.startsWith("Revoke"));
  const revoked = await browser.submit(page, {}, button?.closest("form"));
  t.regex(revoked.text, /Secret revoked/);
  await t.throwsAsync(service.token(client), { message: /invalid_client/ });

  const uris = await browser.open(`${url}/redirect-uris`);
  const rejected = await browser.press(uris, "Add redirect URI", { redirect_uri: "http://b.example/cb" });
  t.is(rejected.status, 422);
  isMarked(t, rejected, "redirect_uri", /^Must use https/);
  t.is(rejected.html.querySelector("[role=alert]")?.text, "Fix the errors below and try again.");
  t.is(typedIn(rejected, "redirect_uri"), "http://b.example/cb");
  const added = await browser.press(rejected, "Add redirect URI", { redirect_uri: " https://a.example/cb" });
  t.regex(added.text, /Redirect URI added\./);
  t.deepEqual(
    added.html.querySelectorAll("td code").map(({ text }) => text),
    ["https://a.example/cb"],
  );
  const removed = await browser.press(added, "Remove https://a.example/cb");
  t.regex(removed.text, /Redirect URI removed\./);
  t.regex(removed.text, /No redirect URIs yet/);

  const compromised = await browser.press(form, "Rotate secret", {
    kind: "compromised",
    overlap_hours: "24",
  });
  t.regex(compromised.text, /all tokens of this client have been revoked/);
  await t.throwsAsync(service.token({ clientId, clientSecret }), { message: /invalid_client/ });
});
