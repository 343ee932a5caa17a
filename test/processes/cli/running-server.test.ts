import test from "ava";
import { readSettings } from "../../../server/settings/config.ts";
import { isAcceptedByApi, refresh } from "../../harness/clients/oauth.ts";
import { commandRunner } from "../../harness/commands.ts";
import { bearer, startTestService } from "../../harness/service.ts";
import { createTenants } from "../../harness/surfaces.ts";

const service = await startTestService();
const answer = commandRunner({ ...service, settings: readSettings({}) });
const run = (...words: string[]) => answer(words);

const statusOf = async (token: string) =>
  (await fetch(`${service.url}/v1/links`, { headers: bearer(token) })).status;
const follow = async (slug: string) => (await fetch(`${service.url}/${slug}`, { redirect: "manual" })).status;

test("org suspend and org resume take effect on the running server", async (t) => {
  const { app, clientToken } = await createTenants(service);
  const suspended = await run("org", "suspend", app.id, "--reason", "Phishing links");
  t.is(suspended.suspended.reason, "Phishing links");
  t.is(await statusOf(clientToken), 403);
  t.deepEqual(await run("org", "suspend", app.id), suspended, "the first suspension is kept");
  t.deepEqual((await run("org", "show", app.id)).suspended, suspended.suspended);
  const resumed = { organization: suspended.organization, suspended: null };
  for (let time = 0; time < 2; time++) t.deepEqual(await run("org", "resume", app.id), resumed);
  t.is(await statusOf(clientToken), 200);
  t.deepEqual(Object.keys(await run("org", "show", app.id)), ["organization", "client"]);
});

test("client disable and client enable take effect on the running server", async (t) => {
  const { app, clientToken } = await createTenants(service);
  const { disabled } = await run("client", "disable", app.id, "--reason", "Leaked");
  t.like(disabled, { by: "operator", reason: "Leaked" });
  t.false(await isAcceptedByApi(service, clientToken));
  t.deepEqual((await run("org", "show", app.id)).client.disabled, disabled);
  t.deepEqual(await run("client", "enable", app.id), { disabled: null });
  t.true(await isAcceptedByApi(service, clientToken));
});

test("link disable takes the ID, slug or short URL", async (t) => {
  const { own, links } = await createTenants(service);
  const { slug, id } = links.own;
  for (const name of [id, slug, `https://go.example.com/${slug}?utm_source=mail`]) {
    const { link, organization } = await run("link", "disable", name, "--reason", "Phishing");
    t.like(link, { id, slug, disabled_reason: "Phishing" });
    t.deepEqual(organization, { id: own.id, name: own.name });
    t.is(await follow(slug), 410);
    t.is((await run("link", "enable", name)).link.disabled_at, null);
    t.is(await follow(slug), 302);
  }
  t.is((await run("link", "show", slug)).link.id, id);
});

test("grant revoke, user sign-out, disable and enable end what they say", async (t) => {
  const { app, own, user, accessToken, refreshToken } = await createTenants(service);
  const [grant] = await service.storage.grants.listByOrganization(own.id);
  const id = String(grant?.id);
  for (let time = 0; time < 2; time++) t.deepEqual(await run("grant", "revoke", "--", id), { revoked: id });
  t.false(await isAcceptedByApi(service, accessToken));
  t.is((await refresh(service, app, refreshToken)).body.error, "invalid_grant");
  const { ended } = await run("user", "sign-out", user.username, "--apps");
  t.deepEqual(ended, { sessions: 1, grants: 1 });
  const { disabled } = await run("user", "disable", user.username, "--reason", "Taken over");
  t.is(disabled.reason, "Taken over");
  const shown = await run("user", "show", user.username);
  t.deepEqual(shown.disabled, disabled);
  t.is(shown.organizations[0].id, own.id);
  t.is((await run("user", "enable", user.username)).disabled, null);
});

test("user delete and org delete are refused or complete", async (t) => {
  const { app, own, user } = await createTenants(service);
  const other = await service.createUser([own.id]);
  await t.throwsAsync(run("user", "delete", user.username), { code: "last_owner" });
  const deleted = { id: other.id, username: other.username };
  t.deepEqual(await run("user", "delete", other.username), { deleted, deleted_organizations: [] });
  const { deleted_organizations } = await run("user", "delete", user.username);
  t.deepEqual(deleted_organizations, [{ id: own.id, name: own.name }]);
  t.is((await run("org", "delete", app.id, "--reason", "Abuse")).deleted.id, app.id);
  await t.throwsAsync(run("org", "delete", app.id), { code: "not_found" });
});
