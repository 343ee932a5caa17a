import test from "ava";
import { isProblem } from "../../harness/clients/api.ts";
import { openConsent } from "../../harness/clients/authorization.ts";
import { authorizeUrl, createApp } from "../../harness/clients/authorization-request.ts";
import { auditOf, createTeam } from "../../harness/clients/dashboard.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { OPERATOR, startTestService } from "../../harness/service.ts";

export const databases = "all";

const service = await startTestService();

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
  const changes = await auditOf({ base, owner }, "&type=client.profile_changed");
  const [removed, changed] = changes.map(({ summary }) =>
    summary.replace("changed the name of the client to ", ""),
  );
  t.is(removed, "that of the organization, and its homepage to none");
  t.is(changed, "“Acme Reports”, and its homepage to https://reports.acme.example/");
});

test("a name or a homepage that could deceive is rejected, and changes nothing", async (t) => {
  const { look, save } = await withClient();
  await save({ client_name: "Acme Reports" });
  const invalid: Record<string, string[]> = {
    client_name: ["", "a".repeat(101), "Iinkgate"],
    client_uri: [
      "http://acme.example/",
      "https://user:word@acme.example/",
      `https://a.example/${"a".repeat(255)}`,
    ],
  };
  for (const [field, values] of Object.entries(invalid)) {
    const refused = { status: 422, code: `invalid_${field}`, fields: [field] };
    for (const value of values) isProblem(t, await save({ [field]: value }), refused);
  }
  const logo = await save({ logo_uri: "https://acme.example/logo.png" });
  isProblem(t, logo, { status: 422, code: "unknown_field", fields: ["logo_uri"] });
  t.is((await look()).client_name, "Acme Reports");
});

test("the consent page shows the name, the homepage and whose app it is, and warns users of other organizations", async (t) => {
  const { app, own, user } = await createApp(service);
  const profile = { name: "ChatGPT", homepage: "https://chat.example/" };
  await service.storage.clients.setProfile(app.id, profile, OPERATOR);
  const page = await openConsent(new TestBrowser(service.url), user, authorizeUrl(service, app));
  const main = page.html.querySelector("main");
  t.is(main?.querySelector("h1 ~ p a")?.attributes.href, "https://chat.example/");
  const text = main?.structuredText.replaceAll(/\s+/g, " ") ?? "";
  t.true(text.includes(`by ${app.name}`), text);
  t.true(text.includes(`Not verified: the organization ${app.name} chose the name of this app.`), text);
  t.true(text.includes(own.name));
  const signIn = await new TestBrowser(service.url).open(authorizeUrl(service, app));
  t.true(signIn.html.textContent.includes(`ChatGPT, an app by ${app.name}, wants to access your account.`));
});
