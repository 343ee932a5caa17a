import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import { isAcceptedByApi, refresh } from "../../harness/clients/oauth.ts";
import { runCommand, stopPrograms } from "../../harness/program.ts";
import { bearer, startTestService } from "../../harness/service.ts";
import { createTenants } from "../../harness/surfaces.ts";

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-switches-"));
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
  const { client_id, disabled } = await answer("client", "disable", app.id, "--reason", "Leaked");
  t.is(client_id, app.clientId);
  t.like(disabled, { by: "operator", reason: "Leaked" });
  t.false(await isAcceptedByApi(service, clientToken));
  t.deepEqual((await answer("org", "show", app.id)).client.disabled, disabled);
  t.deepEqual(await answer("client", "enable", app.id), { client_id, disabled: null });
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
