import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import {
  authorizeUrl,
  createApp,
  isAcceptedByApi,
  refresh,
  runCodeFlow,
} from "../../harness/clients/oauth.ts";
import { runCommand, stopPrograms } from "../../harness/program.ts";
import { bearer, postForm, startTestService, type TestOrganization } from "../../harness/service.ts";
import { createTenants } from "../../harness/surfaces.ts";

export const stage = "processes";

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-running-"));
const settings = { DATABASE_URL: `sqlite:${folder}/test.sqlite` };
const service = await startTestService(settings);

test.after.always(stopPrograms);
test.after.always(async () => {
  await service.close();
  rmSync(folder, { recursive: true, force: true });
});

const run = (...words: string[]) => runCommand(["--json", ...words], { settings });

async function answer(...words: string[]) {
  const { code, stdout, stderr } = await run(...words);
  if (code !== 0) throw new Error(`${words.join(" ")}: ${code} ${stderr}`);
  return JSON.parse(stdout);
}

function requestToken({ clientId, clientSecret }: TestOrganization) {
  return postForm(`${service.url}/oauth/token`, {
    grant_type: "client_credentials",
    client_id: clientId,
    client_secret: clientSecret,
  });
}

/** Returns whether a secret gets a token. Any failure but invalid_client is an error. */
async function isValidSecret(app: TestOrganization, clientSecret: string): Promise<boolean> {
  const { status } = await requestToken({ ...app, clientSecret });
  if (status !== 200 && status !== 401) throw new Error(`status ${status}`);
  return status === 200;
}

test("after a rotation the old secret is valid for the overlap, and a third secret ends it", async (t) => {
  const app = await service.createOrganization();
  const token = await service.token(app);
  const { client_secret: second } = await answer("client", "rotate", app.id);
  t.true(await isValidSecret(app, app.clientSecret));
  t.true(await isValidSecret(app, second));
  const { client_secret: third } = await answer("client", "rotate", app.id);
  t.false(await isValidSecret(app, app.clientSecret));
  t.true(await isValidSecret(app, second));
  t.true(await isValidSecret(app, third));
  t.true(await isAcceptedByApi(service, token), "rotating keeps tokens valid");
});

test("an overlap of 0h ends the old secret on the next request", async (t) => {
  const app = await service.createOrganization();
  t.true(await isValidSecret(app, app.clientSecret));
  const { client_secret: second } = await answer("client", "rotate", app.id, "--overlap", "0h");
  t.false(await isValidSecret(app, app.clientSecret));
  t.true(await isValidSecret(app, second));
});

test("--compromised revokes the older secrets and every token of the client, and of no other client", async (t) => {
  const { app, user } = await createApp(service);
  const { app: other, user: neighbour } = await createApp(service);
  const own = await service.token(app);
  const { accessToken, refreshToken } = await runCodeFlow(service, app, user);
  const { accessToken: foreign } = await runCodeFlow(service, other, neighbour);
  const { client_secret: second } = await answer("client", "rotate", app.id);
  const { client_secret: third } = await answer("client", "rotate", app.id, "--compromised");
  for (const secret of [app.clientSecret, second]) t.false(await isValidSecret(app, secret));
  t.true(await isValidSecret(app, third));
  t.false(await isAcceptedByApi(service, own));
  t.false(await isAcceptedByApi(service, accessToken));
  t.true(await isAcceptedByApi(service, foreign));
  const refreshed = await postForm(`${service.url}/oauth/token`, {
    grant_type: "refresh_token",
    refresh_token: refreshToken,
    client_id: app.clientId,
    client_secret: third,
  });
  t.is(refreshed.status, 400);
  t.like(await refreshed.json(), { error: "invalid_grant" });
});

test("a downgrade stops the client on the next request, and an upgrade restores it", async (t) => {
  const app = await service.createOrganization();
  const token = await service.token(app);
  t.deepEqual(Object.keys(await answer("org", "plan", app.id, "free")), ["organization"]);
  const refused = await requestToken(app);
  t.is(refused.status, 400);
  t.like(await refused.json(), { error: "unauthorized_client" });
  const api = await fetch(`${service.url}/v1/organization`, { headers: bearer(token) });
  t.is(api.status, 403);
  t.like(await api.json(), { code: "plan_required" });
  t.deepEqual(Object.keys(await answer("org", "plan", app.id, "premium")), ["organization"]);
  t.is((await requestToken(app)).status, 200);
  t.true(await isAcceptedByApi(service, token));
});

test("new redirect URIs replace the old ones on the next request", async (t) => {
  const app = await service.createOrganization();
  const open = async (redirect_uri: string) =>
    (await fetch(authorizeUrl(service, app, { redirect_uri }), { redirect: "manual" })).status;
  const [first, second] = ["https://one.example.com/callback", "https://two.example.com/callback"];
  await answer("client", "redirect-uris", app.id, first);
  t.is(await open(first), 303);
  t.is(await open(second), 400);
  await answer("client", "redirect-uris", app.id, second);
  t.is(await open(first), 400);
  t.is(await open(second), 303);
});

test.serial("ten concurrent upgrades create one client", async (t) => {
  const { organization } = await service.storage.organizations.create("Raced", "free", OPERATOR);
  const calls = Array.from({ length: 10 }, () => answer("org", "plan", organization.id, "growth"));
  const answers = await Promise.all(calls);
  const made = answers.filter(({ client }) => client);
  t.is(made.length, 1);
  const [{ client }] = made;
  const app = { ...organization, clientId: client.client_id, clientSecret: client.client_secret };
  t.is((await requestToken(app)).status, 200);
  t.is((await answer("org", "show", organization.id)).client.secrets.length, 1);
});

test.serial("ten concurrent rotations leave two valid secrets", async (t) => {
  const app = await service.createOrganization();
  const calls = Array.from({ length: 10 }, () => answer("client", "rotate", app.id));
  const secrets = (await Promise.all(calls)).map(({ client_secret }) => client_secret);
  t.is(new Set(secrets).size, 10);
  const good = [];
  for (const secret of [app.clientSecret, ...secrets])
    if (await isValidSecret(app, secret)) good.push(secret);
  t.is(good.length, 2);
});

test.serial("ten concurrent calls create one user of a name", async (t) => {
  const app = await service.createOrganization();
  const words = ["user", "create", "wanted", "--org", app.id, "--json"];
  const calls = Array.from({ length: 10 }, () => runCommand(words, { settings }, "a long enough password"));
  const endings = await Promise.all(calls);
  t.is(endings.filter(({ code }) => code === 0).length, 1);
  for (const { code, stderr } of endings) if (code) t.is(JSON.parse(stderr).error.code, "username_taken");
});

async function errorCode(...words: string[]): Promise<string> {
  const { code, stderr } = await run(...words);
  return code === 1 ? JSON.parse(stderr).error.code : `exit code ${code}`;
}

const statusOf = async (token: string) =>
  (await fetch(`${service.url}/v1/links`, { headers: bearer(token) })).status;
const follow = async (slug: string) => (await fetch(`${service.url}/${slug}`, { redirect: "manual" })).status;

test("org suspend and org resume take effect on the running server", async (t) => {
  const { app, clientToken } = await createTenants(service);
  const suspended = await answer("org", "suspend", app.id, "--reason", "Phishing links");
  t.is(suspended.suspended.reason, "Phishing links");
  t.is(await statusOf(clientToken), 403);
  t.deepEqual(await answer("org", "suspend", app.id), suspended, "the first suspension is kept");
  t.deepEqual((await answer("org", "show", app.id)).suspended, suspended.suspended);
  const resumed = { organization: suspended.organization, suspended: null };
  for (let time = 0; time < 2; time++) t.deepEqual(await answer("org", "resume", app.id), resumed);
  t.is(await statusOf(clientToken), 200);
  t.deepEqual(Object.keys(await answer("org", "show", app.id)), ["organization", "client"]);
});

test("client disable and client enable take effect on the running server", async (t) => {
  const { app, clientToken } = await createTenants(service);
  const { disabled } = await answer("client", "disable", app.id, "--reason", "Leaked");
  t.like(disabled, { by: "operator", reason: "Leaked" });
  t.false(await isAcceptedByApi(service, clientToken));
  t.deepEqual((await answer("org", "show", app.id)).client.disabled, disabled);
  t.deepEqual(await answer("client", "enable", app.id), { disabled: null });
  t.true(await isAcceptedByApi(service, clientToken));
});

test("link disable takes the ID, slug or short URL", async (t) => {
  const { own, links } = await createTenants(service);
  const { slug, id } = links.own;
  for (const name of [id, slug, `https://go.example.com/${slug}?utm_source=mail`]) {
    const { link, organization } = await answer("link", "disable", name, "--reason", "Phishing");
    t.like(link, { id, slug, disabled_reason: "Phishing" });
    t.deepEqual(organization, { id: own.id, name: own.name });
    t.is(await follow(slug), 410);
    t.is((await answer("link", "enable", name)).link.disabled_at, null);
    t.is(await follow(slug), 302);
  }
  t.is((await answer("link", "show", slug)).link.id, id);
});

test("grant revoke, user sign-out, disable and enable end what they say", async (t) => {
  const { app, own, user, accessToken, refreshToken } = await createTenants(service);
  const [grant] = await service.storage.grants.listByOrganization(own.id);
  const id = String(grant?.id);
  for (let time = 0; time < 2; time++)
    t.deepEqual(await answer("grant", "revoke", "--", id), { revoked: id });
  t.false(await isAcceptedByApi(service, accessToken));
  t.is((await refresh(service, app, refreshToken)).body.error, "invalid_grant");
  const { ended } = await answer("user", "sign-out", user.username, "--apps");
  t.deepEqual(ended, { sessions: 1, grants: 1 });
  const { disabled } = await answer("user", "disable", user.username, "--reason", "Taken over");
  t.is(disabled.reason, "Taken over");
  const shown = await answer("user", "show", user.username);
  t.deepEqual(shown.disabled, disabled);
  t.is(shown.organizations[0].id, own.id);
  t.is((await answer("user", "enable", user.username)).disabled, null);
});

test("user delete and org delete are refused or complete", async (t) => {
  const { app, own, user } = await createTenants(service);
  const other = await service.createUser([own.id]);
  t.is(await errorCode("user", "delete", user.username), "last_owner");
  t.deepEqual(await answer("user", "delete", other.username), {
    deleted: { id: other.id, username: other.username },
    deleted_organizations: [],
  });
  const { deleted_organizations } = await answer("user", "delete", user.username);
  t.deepEqual(deleted_organizations, [{ id: own.id, name: own.name }]);
  t.is((await answer("org", "delete", app.id, "--reason", "Abuse")).deleted.id, app.id);
  t.is(await errorCode("org", "delete", app.id), "not_found");
});

test("unknown names and invalid reasons are reported by code", async (t) => {
  const organization = await service.createOrganization("Free", "free");
  for (const [words, code] of [
    [["org", "suspend", "org_none"], "not_found"],
    [["org", "suspend", organization.id, "--reason", " "], "invalid_reason"],
    [["client", "disable", organization.id], "no_client"],
    [["user", "disable", "unknown"], "not_found"],
    [["link", "disable", "none"], "not_found"],
    [["grant", "revoke", "none"], "not_found"],
  ] as const) {
    t.is(await errorCode(...words), code, words.join(" "));
  }
});
