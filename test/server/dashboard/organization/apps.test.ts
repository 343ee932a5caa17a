import test from "ava";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { isMissing, isProblem } from "../../../harness/clients/api.ts";
import { browserOf, createColleague, createTeam } from "../../../harness/clients/dashboard.ts";
import { tokensFor } from "../../../harness/clients/flow.ts";
import { authorizeUrl, isAcceptedByApi, openConsent } from "../../../harness/clients/oauth.ts";
import { TestBrowser } from "../../../harness/clients/test-browser.ts";
import { providerSettings } from "../../../harness/providers/identity-provider.ts";
import { startTokenIssuer } from "../../../harness/providers/token-issuer.ts";
import { startTestService } from "../../../harness/service.ts";
import { until } from "../../../harness/webhooks.ts";

const idp = await startTokenIssuer();
const service = await startTestService(providerSettings(idp.issuer));

const app = await service.createOrganization("An app & sons");

test.after.always(async () => {
  await service.close();
  await idp.stop();
});

const PATH = "/apps/enterprise-authorization";
const ON = { json: { enabled: true } };

test("an owner turns it on and off, and the list of apps says so", async (t) => {
  const { base, owner } = await createTeam(service);
  const isOn = async () =>
    (await owner.api.send<{ enterprise_authorization: boolean }>("GET", `${base}/apps`)).body
      .enterprise_authorization;
  t.false(await isOn());
  t.is((await owner.api.send("PUT", base + PATH, ON)).status, 204);
  t.true(await isOn());
  t.is((await owner.api.send("PUT", base + PATH, { json: { enabled: false } })).status, 204);
  t.false(await isOn());
});

test("in a browser, one button turns it on and the same place turns it off", async (t) => {
  const { base, owner } = await createTeam(service);
  const { browser } = await browserOf(service, owner);
  const on = await browser.press(
    await browser.open(`${service.url}${base}/settings`),
    "Let Example ID authorize apps",
  );
  t.regex(on.html.text, /Enterprise-managed authorization is on\./);
  t.regex(on.html.text, /Example ID may authorize apps/);
  const off = await browser.press(on, "Turn off");
  t.regex(off.html.text, /Enterprise-managed authorization is off\./);
});

test("admins and members can't change it, and another value is rejected", async (t) => {
  const { base, owner, admin, member } = await createTeam(service);
  for (const { api } of [admin, member]) t.is((await api.send("PUT", base + PATH, ON)).status, 403);
  isProblem(t, await owner.api.send("PUT", base + PATH, { json: { enabled: "yes" } }), {
    status: 422,
    code: "invalid_enabled",
    fields: ["enabled"],
  });
});

test("a server without an identity provider refuses it", async (t) => {
  const plain = await startTestService();
  t.teardown(() => plain.close());
  const { base, owner } = await createTeam(plain);
  isProblem(t, await owner.api.send("PUT", base + PATH, ON), { status: 409, code: "no_identity_provider" });
  const { browser } = await browserOf(plain, owner);
  t.notRegex((await browser.open(`${plain.url}${base}/settings`)).html.text, /Enterprise-managed/);
});

type Apps = {
  data: {
    id: string;
    app: string;
    client_id: string;
    user: { id: string; username: string };
    scopes: string[];
    granted_at: string;
    expires_at: string;
    last_used_at: string | null;
  }[];
};

/** Creates a team of which one user has authorized an app. */
async function withApp(scope = "links:read", who: "admin" | "member" = "member") {
  const team = await createTeam(service);
  const organizationId = team.organization.id;
  const tokens = await tokensFor(service, app, team[who], {
    organizationId,
    parameters: { scope },
  });
  const path = `${team.base}/apps`;
  const look = async () => (await team.owner.api.send<Apps>("GET", path)).body.data;
  return { ...team, path, token: tokens.access_token, look };
}

test("an authorized app is listed with its user and scopes", async (t) => {
  const { member, look } = await withApp();
  const [shown, ...others] = await look();
  t.is(others.length, 0);
  t.is(shown?.app, "An app & sons");
  t.is(shown?.client_id, app.clientId);
  t.deepEqual(shown?.user, { id: member.id, username: member.username });
  t.deepEqual(shown?.scopes, ["links:read"]);
  t.true(Date.parse(shown?.granted_at ?? "") <= Date.now());
  t.true(Date.parse(shown?.expires_at ?? "") > Date.now());
});

test("a read scope that a write scope includes isn't listed separately", async (t) => {
  const { look } = await withApp("links:write webhooks:read webhooks:write", "admin");
  t.deepEqual((await look())[0]?.scopes, ["links:write", "webhooks:write"]);
});

test("the last use of an app is recorded", async (t) => {
  const { token, look } = await withApp();
  t.is((await look())[0]?.last_used_at, null);
  t.true(await isAcceptedByApi(service, token));
  const lastUsed = await until(async () => (await look())[0]?.last_used_at ?? undefined);
  t.true(Math.abs(Date.parse(lastUsed) - Date.now()) < 60_000, lastUsed);
});

for (const who of ["owner", "admin", "member"] as const) {
  test(`an app that the ${who} revokes loses access immediately`, async (t) => {
    const { [who]: user, path, token, look } = await withApp();
    t.true(await isAcceptedByApi(service, token));
    const [{ id } = { id: "" }] = await look();
    t.is((await user.api.send("DELETE", `${path}/${id}`)).status, 204);
    t.false(await isAcceptedByApi(service, token));
    t.deepEqual(await look(), []);
    isMissing(t, await user.api.send("DELETE", `${path}/${id}`));
  });
}

test("a member can't revoke an app that another user authorized", async (t) => {
  const { organization, path, token, look } = await withApp();
  const other = await createColleague(service, organization.id, "member");
  const [{ id } = { id: "" }] = await look();
  isProblem(t, await other.api.send("DELETE", `${path}/${id}`), { status: 403, code: "role_required" });
  t.true(await isAcceptedByApi(service, token));
});

test("another organization's authorized app can be neither seen nor revoked", async (t) => {
  const { stranger, other, token, look } = await withApp();
  const [{ id } = { id: "" }] = await look();
  const theirs = `/dashboard/organizations/${other.id}/apps`;
  t.deepEqual((await stranger.api.send<Apps>("GET", theirs)).body.data, []);
  isMissing(t, await stranger.api.send("DELETE", `${theirs}/${id}`));
  t.true(await isAcceptedByApi(service, token));
});

test("managers also see the client and the trust rules of the organization, with their last use", async (t) => {
  const { organization, owner, member, base, path } = await withApp();
  const client = await service.storage.clients.findByOrganization(organization.id);
  const rule = await service.storage.trustRules.create(
    organization.id,
    {
      name: "Deploy",
      issuer: "https://ci.example",
      subject: "job",
      audience: service.url,
      claims: {},
      scopes: ["links:read"],
    },
    OPERATOR,
  );
  if (typeof rule === "string") return t.fail(rule);
  const { browser } = await browserOf(service, owner);
  const rowsOf = async () =>
    (await browser.open(service.url + path)).html
      .querySelectorAll("main table")
      .at(-1)
      ?.querySelectorAll("tbody tr");
  const [own, workload, ...others] = (await rowsOf()) ?? [];
  t.is(others.length, 0);
  t.regex(own?.text ?? "", /^TTeam.*never/s);
  t.regex(workload?.text ?? "", /^Deploy.*ci\.example.*never/s);
  t.deepEqual(
    [own, workload].flatMap((row) => row?.querySelectorAll("a").map(({ attributes }) => attributes.href)),
    [`${base}/audit?client_id=${client?.clientId}`, `${base}/client`, `${base}/workload-identity`],
  );

  await service.storage.trustRules.markUsed([rule.id], Date.now());
  const [secret] = client?.secrets ?? [];
  const use = { program: "curl", network: "192.0.2.0/24", lastUsedAt: Date.now() };
  await service.storage.clients.recordSecretUse(secret?.id ?? "", use);
  for (const row of (await rowsOf()) ?? []) t.notRegex(row.text, /never/);

  const { browser: other } = await browserOf(service, member);
  t.notRegex((await other.open(service.url + path)).text, /Also acting for/);
});

test("an app can be revoked in a browser", async (t) => {
  const { owner, path, token, member } = await withApp();
  const { browser } = await browserOf(service, owner);
  const page = await browser.open(service.url + path);
  t.regex(page.html.querySelector("table")?.text ?? "", new RegExp(`An app & sons[^]*${member.username}`));
  const link = page.html.querySelectorAll("main a").find(({ text }) => text.startsWith("Revoke"));
  const confirmation = await browser.open(service.url + link?.attributes.href);
  const text = confirmation.html.querySelector("main")?.text ?? "";
  t.regex(text, new RegExp(`An app & sons[^]*Team[^]*${member.username}[^]*links:read`));
  t.true(await isAcceptedByApi(service, token), "the page changes nothing");
  const done = await browser.press(confirmation, "Revoke access");
  t.regex(done.text, /Access revoked/);
  t.regex(done.text, /No authorized apps/);
  t.false(await isAcceptedByApi(service, token));
});

test("an app of a former member isn't listed", async (t) => {
  const { organization, member, look } = await withApp();
  await service.storage.members.remove({
    organizationId: organization.id,
    userId: member.id,
    manageableRoles: ["member"],
    actor: OPERATOR,
  });
  t.deepEqual(await look(), []);
});

test("the dashboard and the authorization endpoint share one session", async (t) => {
  const { member } = await withApp();
  const request = authorizeUrl(service, app);
  const before = new TestBrowser(service.url);
  await openConsent(before, member, request);
  t.is((await before.open(`${service.url}/dashboard`)).html.querySelector("h1")?.text, "Team");
  const { browser: after } = await browserOf(service, member);
  t.is((await after.open(request)).html.querySelector("h1")?.text, "Allow access?");
});
