import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import { OPERATOR } from "../../resources/events.ts";
import { authorizeUrl, createApp, newTokens, opensApi } from "../harness/oauth.ts";
import { runCommand, stopPrograms } from "../harness/program.ts";
import { bearer, postForm, startTestService, type TestOrganization } from "../harness/service.ts";

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-running-"));
const settings = { DATABASE_URL: `sqlite:${folder}/test.sqlite` };
const service = await startTestService(settings);
test.after.always(stopPrograms);
test.after.always(async () => {
  await service.close();
  rmSync(folder, { recursive: true, force: true });
});

async function answer(...words: string[]) {
  const { code, stdout, stderr } = await runCommand([...words, "--json"], { settings });
  if (code !== 0) throw new Error(`${words.join(" ")}: ${code} ${stderr}`);
  return JSON.parse(stdout);
}

function askToken({ clientId, clientSecret }: TestOrganization) {
  return postForm(`${service.url}/oauth/token`, {
    grant_type: "client_credentials",
    client_id: clientId,
    client_secret: clientSecret,
  });
}

/** Whether a secret gets a token; only a refusal of the client counts as no. */
async function isGood(app: TestOrganization, clientSecret: string): Promise<boolean> {
  const { status } = await askToken({ ...app, clientSecret });
  if (status !== 200 && status !== 401) throw new Error(`status ${status}`);
  return status === 200;
}

test("sec 128: a rotation leaves the old secret valid for the overlap, and a third one ends it", async (t) => {
  const app = await service.createOrganization();
  const token = await service.token(app);
  const { client_secret: second } = await answer("client", "rotate", app.id);
  t.true(await isGood(app, app.clientSecret));
  t.true(await isGood(app, second));
  const { client_secret: third } = await answer("client", "rotate", app.id);
  t.false(await isGood(app, app.clientSecret));
  t.true(await isGood(app, second));
  t.true(await isGood(app, third));
  t.true(await opensApi(service, token), "rotating leaves tokens alone");
});

test("sec 128: an overlap of nothing ends the old secret on the next request", async (t) => {
  const app = await service.createOrganization();
  t.true(await isGood(app, app.clientSecret));
  const { client_secret: second } = await answer("client", "rotate", app.id, "--overlap", "0h");
  t.false(await isGood(app, app.clientSecret));
  t.true(await isGood(app, second));
});

test("sec 128: --compromised ends the older secrets and every token of the client, and nobody else's", async (t) => {
  const { app, user } = await createApp(service);
  const { app: other, user: neighbour } = await createApp(service);
  const own = await service.token(app);
  const { accessToken, refreshToken } = await newTokens(service, app, user);
  const { accessToken: foreign } = await newTokens(service, other, neighbour);
  const { client_secret: second } = await answer("client", "rotate", app.id);
  const { client_secret: third } = await answer("client", "rotate", app.id, "--compromised");
  for (const secret of [app.clientSecret, second]) t.false(await isGood(app, secret));
  t.true(await isGood(app, third));
  t.false(await opensApi(service, own));
  t.false(await opensApi(service, accessToken));
  t.true(await opensApi(service, foreign));
  const refreshed = await postForm(`${service.url}/oauth/token`, {
    grant_type: "refresh_token",
    refresh_token: refreshToken,
    client_id: app.clientId,
    client_secret: third,
  });
  t.is(refreshed.status, 400);
  t.like(await refreshed.json(), { error: "invalid_grant" });
});

test("sec 93: a downgrade stops the client on the next request, an upgrade brings the same one back", async (t) => {
  const app = await service.createOrganization();
  const token = await service.token(app);
  t.deepEqual(Object.keys(await answer("org", "plan", app.id, "free")), ["organization"]);
  const refused = await askToken(app);
  t.is(refused.status, 400);
  t.like(await refused.json(), { error: "unauthorized_client" });
  const api = await fetch(`${service.url}/v1/organization`, { headers: bearer(token) });
  t.is(api.status, 403);
  t.like(await api.json(), { code: "plan_required" });
  t.deepEqual(Object.keys(await answer("org", "plan", app.id, "premium")), ["organization"]);
  t.is((await askToken(app)).status, 200);
  t.true(await opensApi(service, token));
});

test("new redirect URIs count on the next request, and the old ones do not", async (t) => {
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

test.serial("ten upgrades at once make one client", async (t) => {
  const { organization } = await service.storage.organizations.create("Raced", "free", OPERATOR);
  const calls = Array.from({ length: 10 }, () => answer("org", "plan", organization.id, "growth"));
  const answers = await Promise.all(calls);
  const made = answers.filter(({ client }) => client);
  t.is(made.length, 1);
  const [{ client }] = made;
  const app = { ...organization, clientId: client.client_id, clientSecret: client.client_secret };
  t.is((await askToken(app)).status, 200);
  t.is((await answer("org", "show", organization.id)).client.secrets.length, 1);
});

test.serial("ten rotations at once leave two live secrets", async (t) => {
  const app = await service.createOrganization();
  const calls = Array.from({ length: 10 }, () => answer("client", "rotate", app.id));
  const secrets = (await Promise.all(calls)).map(({ client_secret }) => client_secret);
  t.is(new Set(secrets).size, 10);
  const good = [];
  for (const secret of [app.clientSecret, ...secrets]) if (await isGood(app, secret)) good.push(secret);
  t.is(good.length, 2);
});

test.serial("ten people at once get one name once", async (t) => {
  const app = await service.createOrganization();
  const words = ["user", "create", "wanted", "--org", app.id, "--json"];
  const calls = Array.from({ length: 10 }, () => runCommand(words, { settings }, "a password for people"));
  const endings = await Promise.all(calls);
  t.is(endings.filter(({ code }) => code === 0).length, 1);
  for (const { code, stderr } of endings) if (code) t.is(JSON.parse(stderr).error.code, "username_taken");
});
