import test from "ava";
import type { HTMLElement } from "node-html-parser";
import { PNG } from "pngjs";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { isProblem } from "../../../harness/clients/api.ts";
import { browserOf, createTeam } from "../../../harness/clients/dashboard.ts";
import { png, uploadLogo } from "../../../harness/clients/logos.ts";
import { authorizeUrl, createApp, openConsent } from "../../../harness/clients/oauth.ts";
import { isMarked } from "../../../harness/clients/pages.ts";
import { TestBrowser } from "../../../harness/clients/test-browser.ts";
import { advanceClock } from "../../../harness/clock.ts";
import { startTestService } from "../../../harness/service.ts";

export const databases = "all";

const service = await startTestService();
test.after.always(() => service.close());

type Branding = { client_name: string | null; client_uri: string | null; logo_uri: string | null };

async function withClient() {
  const team = await createTeam(service, "growth");
  const path = `${team.base}/client/branding`;
  const look = async () => (await team.owner.api.get<Branding>(path)).body;
  const save = (json: object, { api } = team.owner) => api.send<Branding>("PUT", path, { json });
  const upload = (file: Buffer, user = team.owner) => uploadLogo<Branding>(user, `${path}/logo`, file);
  return { ...team, path, look, save, upload };
}

async function fetchLogo(url: string | null): Promise<{ response: Response; image: PNG }> {
  const response = await fetch(url ?? "");
  return { response, image: PNG.sync.read(Buffer.from(await response.arrayBuffer())) };
}

const EMPTY: Branding = { client_name: null, client_uri: null, logo_uri: null };

test("the name and the homepage of a client are saved together, removed, and audited", async (t) => {
  const { base, owner, look, save } = await withClient();
  t.deepEqual(await look(), EMPTY);
  const json = { client_name: " Acme Reports ", client_uri: "https://reports.acme.example/" };
  const saved = { ...EMPTY, client_name: "Acme Reports", client_uri: json.client_uri };
  t.deepEqual((await save(json)).body, saved);
  t.deepEqual(await look(), saved);
  t.like((await owner.api.get<object>(`${base}/client`)).body, saved);
  t.deepEqual((await save({})).body, EMPTY);
  type Audit = { data: { summary: string }[] };
  const { body } = await owner.api.get<Audit>(`${base}/audit?type=client.profile_changed`);
  t.deepEqual(
    body.data.map(({ summary }) => summary),
    [
      "changed the name of the client to that of the organization, and its homepage to none",
      "changed the name of the client to “Acme Reports”, and its homepage to https://reports.acme.example/",
    ],
  );
});

for (const [json, code, field] of [
  [{ client_name: "" }, "invalid_client_name", "client_name"],
  [{ client_name: "a".repeat(101) }, "invalid_client_name", "client_name"],
  [{ client_name: "Acme\u202eReports" }, "invalid_client_name", "client_name"],
  [{ client_name: "Iinkgate" }, "invalid_client_name", "client_name"],
  [{ client_uri: "http://acme.example/" }, "invalid_client_uri", "client_uri"],
  [{ client_uri: "https://user:word@acme.example/" }, "invalid_client_uri", "client_uri"],
  [{ client_uri: "javascript:alert(1)" }, "invalid_client_uri", "client_uri"],
  [{ client_uri: `https://acme.example/${"a".repeat(255)}` }, "invalid_client_uri", "client_uri"],
  [{ logo_uri: "https://acme.example/logo.png" }, "unknown_field", "logo_uri"],
] as const) {
  test(`${JSON.stringify(json).slice(0, 60)} is rejected and changes nothing`, async (t) => {
    const { look, save } = await withClient();
    await save({ client_name: "Acme Reports" });
    isProblem(t, await save(json), { status: 422, code, fields: [field] });
    t.is((await look()).client_name, "Acme Reports");
  });
}

test("a logo is a square PNG with transparent borders, at an address for its content", async (t) => {
  const { look, upload } = await withClient();
  const { status, body } = await upload(png(1024, 512));
  t.is(status, 200);
  t.deepEqual(body, await look());
  t.regex(body.logo_uri ?? "", new RegExp(`^${service.url}/assets/logos/[\\w-]{43}\\.png$`));
  const { response, image } = await fetchLogo(body.logo_uri);
  t.is(response.headers.get("content-type"), "image/png");
  t.is(response.headers.get("cache-control"), "public, max-age=31536000, immutable");
  t.is(response.headers.get("x-content-type-options"), "nosniff");
  t.is(response.headers.get("set-cookie"), null);
  t.deepEqual([image.width, image.height], [256, 256]);
  const at = (x: number, y: number) => [...image.data.subarray((y * 256 + x) * 4, (y * 256 + x) * 4 + 4)];
  t.deepEqual(at(128, 63), [0, 0, 0, 0]);
  t.deepEqual(at(0, 64), [200, 30, 60, 255]);
  t.deepEqual(at(255, 191), [200, 30, 60, 255]);
  t.deepEqual(at(128, 192), [0, 0, 0, 0]);
});

test("a body that is much too large is not read to its end", async (t) => {
  const { upload, look } = await withClient();
  isProblem(t, await upload(Buffer.alloc(2 ** 20)), { status: 413, code: "body_too_large" });
  t.is((await look()).logo_uri, null);
});

test("what isn't a multipart form with a file is rejected", async (t) => {
  const { owner, path } = await withClient();
  const boundary = { "content-type": "multipart/form-data; boundary=x" };
  for (const [options, status] of [
    [{ json: { logo: "png" } }, 422],
    [{ body: "--x\r\nnothing", headers: boundary }, 400],
    [{ body: png(2, 2).toString("latin1"), headers: { "content-type": "image/png" } }, 415],
  ] as const) {
    t.is((await owner.api.send("PUT", `${path}/logo`, options)).status, status, JSON.stringify(options));
  }
});

test("a logo is removed from its address, unless another client has the same", async (t) => {
  const [one, other] = [await withClient(), await withClient()];
  const color = [1, 2, 3, 255];
  const { logo_uri } = (await one.upload(png(5, 5, color))).body;
  t.is((await other.upload(png(5, 5, color))).body.logo_uri, logo_uri);
  t.is((await one.owner.api.send("DELETE", `${one.path}/logo`)).status, 200);
  t.is((await one.look()).logo_uri, null);
  t.is((await fetch(logo_uri ?? "")).status, 200);
  await other.owner.api.send("DELETE", `${other.path}/logo`);
  t.is((await fetch(logo_uri ?? "")).status, 404);
  type Audit = { data: { summary: string }[] };
  const { body } = await one.owner.api.get<Audit>(`${one.base}/audit?type=client.logo_changed`);
  t.deepEqual(
    body.data.map(({ summary }) => summary),
    ["removed the logo of the client", "changed the logo of the client"],
  );
});

test("a deleted organization leaves no logo", async (t) => {
  const { base, owner, organization, upload } = await withClient();
  const { logo_uri } = (await upload(png(6, 6, [9, 8, 7, 255]))).body;
  const json = { name: organization.name };
  t.true((await owner.api.send("DELETE", base, { json })).status < 300);
  t.is((await fetch(logo_uri ?? "")).status, 404);
});

test("members can't change the branding, and strangers don't find it", async (t) => {
  const { member, stranger, save, upload, path } = await withClient();
  for (const [user, status, code] of [
    [member, 403, "role_required"],
    [stranger, 404, "not_found"],
  ] as const) {
    isProblem(t, await save({ client_name: "Mine" }, user), { status, code });
    isProblem(t, await upload(png(2, 2), user), { status, code });
    isProblem(t, await user.api.send("DELETE", `${path}/logo`), { status, code });
  }
});

test("in a browser, a logo and a name are saved, rejected beside their fields, and removed", async (t) => {
  const { owner, path, look } = await withClient();
  const { browser } = await browserOf(service, owner);
  const page = await browser.open(service.url + path);
  const file = (bytes: Buffer) => new File([Uint8Array.from(bytes)], "logo.png", { type: "image/png" });
  const broken = await browser.press(page, "Upload logo", { logo: file(png(9, 9).subarray(0, 60)) });
  t.is(broken.status, 422);
  isMarked(t, broken, "logo", /^Must be a complete PNG or JPEG image/);
  const uploaded = await browser.press(broken, "Upload logo", { logo: file(png(9, 9)) });
  t.regex(uploaded.text, /Logo saved\./);
  const { logo_uri } = await look();
  t.is(logo_uri, service.url + uploaded.html.querySelector("img.logo")?.attributes.src);
  const insecure = { client_name: "Acme <b>Reports", client_uri: "http://acme.example" };
  const rejected = await browser.press(uploaded, "Save", insecure);
  isMarked(t, rejected, "client_uri", /^Must be an https URL\.$/);
  t.is(rejected.html.querySelector("#client_name")?.attributes.value, insecure.client_name);
  const saved = await browser.press(rejected, "Save", { ...insecure, client_uri: "" });
  t.regex(saved.text, /Branding saved\./);
  t.deepEqual(await look(), { client_name: insecure.client_name, client_uri: null, logo_uri });
  const removed = await browser.press(saved, "Remove logo");
  t.regex(removed.text, /Logo removed\./);
  t.is((await look()).logo_uri, null);
});

test("an upload without a CSRF token is rejected", async (t) => {
  const { owner, path, look } = await withClient();
  const { browser } = await browserOf(service, owner);
  const page = await browser.open(service.url + path);
  const logo = new File([Uint8Array.from(png(9, 9))], "logo.png");
  const forged = await browser.press(page, "Upload logo", { logo, csrf: "forged" });
  t.is(forged.status, 403);
  t.is((await look()).logo_uri, null);
});

test.serial("after ten minutes, changing the branding needs another sign-in", async (t) => {
  const { save, upload, look, path, owner } = await withClient();
  advanceClock(11 * 60_000);
  for (const reply of [
    await save({ client_name: "Late" }),
    await upload(png(2, 2)),
    await owner.api.send("DELETE", `${path}/logo`),
  ])
    isProblem(t, reply, { status: 403, code: "reauthentication_required" });
  t.deepEqual(await look(), EMPTY);
});

test("the consent page shows the logo, the name and whose app it is, and warns users of other organizations", async (t) => {
  const { app, own, user } = await createApp(service);
  await service.storage.clients.setProfile(
    app.id,
    { name: "ChatGPT", homepage: "https://chat.example/" },
    { id: "operator" },
  );
  await service.storage.clients.setLogo(app.id, png(9, 9), { id: "operator" });
  const page = await openConsent(new TestBrowser(service.url), user, authorizeUrl(service, app));
  const main = page.html.querySelector("main");
  t.regex(main?.querySelector("img.logo")?.attributes.src ?? "", /^\/assets\/logos\//);
  t.is(main?.querySelector(".parties a")?.attributes.href, "https://chat.example/");
  const text = main?.structuredText.replaceAll(/\s+/g, " ") ?? "";
  t.true(text.includes(`by ${app.name}`), text);
  t.true(
    text.includes(`Not verified: the organization ${app.name} chose the name and logo of this app.`),
    text,
  );
  t.true(text.includes(own.name));
  const signIn = await new TestBrowser(service.url).open(authorizeUrl(service, app));
  t.true(signIn.html.textContent.includes(`ChatGPT, an app by ${app.name}, wants to access your account.`));
});

test("an organization has the logo of its client wherever it is shown, and its initial without one", async (t) => {
  const { app, own, user } = await createApp(service);
  const plain = await service.createOrganization("Zinc");
  await service.storage.organizations.addMember(plain.id, user.id, "member", OPERATOR);
  await service.storage.clients.setLogo(own.id, png(7, 7), OPERATOR);
  const path = (await service.storage.clients.findProfile(own.clientId))?.logoHash;
  const src = `/assets/logos/${path}.png`;
  const tilesOf = (elements: HTMLElement[]) =>
    elements.map((one) => one.querySelector(".logo")?.attributes.src ?? one.querySelector(".initial")?.text);

  const { browser, page } = await browserOf(service, user);
  t.deepEqual(tilesOf(page.html.querySelectorAll(".tiles li")), [src, "Z"]);
  const opened = await browser.open(`${service.url}/dashboard/organizations/${own.id}`);
  for (const section of ["", "/settings", "/client/branding"]) {
    const { html } = await browser.open(opened.url + section);
    t.deepEqual(tilesOf(html.querySelectorAll("main > .title")), [src], section);
  }
  const menu = opened.html.querySelector("details.menu");
  t.deepEqual(tilesOf(menu?.querySelectorAll("summary, .sheet a") ?? []), [src, src, "Z", undefined]);
  const account = await browser.open(`${service.url}/dashboard/account`);
  t.deepEqual(tilesOf(account.html.querySelectorAll(".menu .sheet a")).slice(0, 2), [src, "Z"]);

  const choice = await browser.open(authorizeUrl(service, app));
  t.deepEqual(tilesOf(choice.html.querySelectorAll("label.option")), [src, "Z"]);
  await service.storage.organizations.setPlan(plain.id, "free", OPERATOR);
  const only = await browser.open(authorizeUrl(service, app));
  t.deepEqual(tilesOf(only.html.querySelectorAll(".parties figure")).at(-1), src);
  t.is((await browser.open(service.url + src)).headers.get("content-type"), "image/png");

  browser.accept = "application/json";
  const me = JSON.parse((await browser.open(`${service.url}/dashboard/me`)).text);
  t.deepEqual(Object.keys(me.organizations[0]), ["id", "name", "plan", "role"]);
});
