import test from "ava";
import type { HTMLElement } from "node-html-parser";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { isProblem } from "../../../harness/clients/api.ts";
import { browserOf, createTeam } from "../../../harness/clients/dashboard.ts";
import { authorizeUrl, createApp, openConsent } from "../../../harness/clients/oauth.ts";
import { isMarked } from "../../../harness/clients/pages.ts";
import { TestBrowser } from "../../../harness/clients/test-browser.ts";
import { advanceClock } from "../../../harness/clock.ts";
import { startTestService } from "../../../harness/service.ts";

export const databases = "all";

const service = await startTestService();
test.after.always(() => service.close());

type Profile = { client_name: string | null; client_uri: string | null };

async function withClient() {
  const team = await createTeam(service, "growth");
  const path = `${team.base}/client/profile`;
  const look = async () => (await team.owner.api.get<Profile>(path)).body;
  const save = (json: object, { api } = team.owner) => api.send<Profile>("PUT", path, { json });
  return { ...team, path, look, save };
}

const EMPTY: Profile = { client_name: null, client_uri: null };

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

test("members can't change the name, and strangers don't find it", async (t) => {
  const { member, stranger, save } = await withClient();
  for (const [user, status, code] of [
    [member, 403, "role_required"],
    [stranger, 404, "not_found"],
  ] as const) {
    isProblem(t, await save({ client_name: "Mine" }, user), { status, code });
  }
});

test("in a browser, a rejected homepage is marked beside its field, and nothing is lost", async (t) => {
  const { owner, path, look } = await withClient();
  const { browser } = await browserOf(service, owner);
  const page = await browser.open(service.url + path);
  const insecure = { client_name: "Acme <b>Reports", client_uri: "http://acme.example" };
  const rejected = await browser.press(page, "Save", insecure);
  t.is(rejected.status, 422);
  isMarked(t, rejected, "client_uri", /^Must be an https URL\.$/);
  t.is(rejected.html.querySelector("#client_name")?.attributes.value, insecure.client_name);
  const saved = await browser.press(rejected, "Save", { ...insecure, client_uri: "" });
  t.regex(saved.text, /Name and homepage saved\./);
  t.deepEqual(await look(), { client_name: insecure.client_name, client_uri: null });
});

test.serial("after ten minutes, changing the name needs another sign-in", async (t) => {
  const { save, look } = await withClient();
  advanceClock(11 * 60_000);
  isProblem(t, await save({ client_name: "Late" }), { status: 403, code: "reauthentication_required" });
  t.deepEqual(await look(), EMPTY);
});

test("the consent page shows the name, the homepage and whose app it is, and warns users of other organizations", async (t) => {
  const { app, own, user } = await createApp(service);
  await service.storage.clients.setProfile(
    app.id,
    { name: "ChatGPT", homepage: "https://chat.example/" },
    { id: "operator" },
  );
  const page = await openConsent(new TestBrowser(service.url), user, authorizeUrl(service, app));
  const main = page.html.querySelector("main");
  t.is(main?.querySelector(".parties a")?.attributes.href, "https://chat.example/");
  const text = main?.structuredText.replaceAll(/\s+/g, " ") ?? "";
  t.true(text.includes(`by ${app.name}`), text);
  t.true(text.includes(`Not verified: the organization ${app.name} chose the name of this app.`), text);
  t.true(text.includes(own.name));
  const signIn = await new TestBrowser(service.url).open(authorizeUrl(service, app));
  t.true(signIn.html.textContent.includes(`ChatGPT, an app by ${app.name}, wants to access your account.`));
});

test("an organization has the initial of its name wherever it is shown", async (t) => {
  const { app, own, user } = await createApp(service);
  const zinc = await service.createOrganization("Zinc");
  await service.storage.organizations.addMember(zinc.id, user.id, "member", OPERATOR);
  const letter = own.name[0]?.toUpperCase();
  const tilesOf = (elements: HTMLElement[]) => elements.map((one) => one.querySelector(".initial")?.text);

  const { browser, page } = await browserOf(service, user);
  t.deepEqual(tilesOf(page.html.querySelectorAll(".tiles li")), [letter, "Z"]);
  const opened = await browser.open(`${service.url}/dashboard/organizations/${own.id}`);
  t.deepEqual(tilesOf(opened.html.querySelectorAll("main > .title")), [letter]);
  const menu = opened.html.querySelector("details.menu");
  t.deepEqual(tilesOf(menu?.querySelectorAll("summary, .sheet a") ?? []), [letter, letter, "Z", undefined]);

  const choice = await browser.open(authorizeUrl(service, app));
  t.deepEqual(tilesOf(choice.html.querySelectorAll("label.option")), [letter, "Z"]);
  await service.storage.organizations.setPlan(zinc.id, "free", OPERATOR);
  const only = await browser.open(authorizeUrl(service, app));
  t.is(tilesOf(only.html.querySelectorAll(".parties figure")).at(-1), letter);

  browser.accept = "application/json";
  const me = JSON.parse((await browser.open(`${service.url}/dashboard/me`)).text);
  t.deepEqual(Object.keys(me.organizations[0]), ["id", "name", "plan", "role"]);
});
