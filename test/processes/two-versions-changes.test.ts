import test from "ava";
import { OPERATOR } from "../../resources/events/types.ts";
import { apiAt, type LinkBody } from "../harness/clients/api.ts";
import { firstPartyToken } from "../harness/clients/dashboard.ts";
import { isAcceptedByApi, postAsClient } from "../harness/clients/oauth.ts";
import { addTotp, logIn } from "../harness/clients/second-factor.ts";
import { stopPrograms } from "../harness/program.ts";
import { bearer, type TestOrganization, type TestService } from "../harness/service.ts";
import { startOlderVersion } from "../harness/two-versions.ts";

export const databases = "all";

// docs/operate/upgrade.md lists what processes of the previous version don't know. They know everything below.

const versions = await startOlderVersion();
const { both, old, current } = versions;
await versions.startCurrent();
const { storage } = current;
const servers = [old, current];
test.after.always(stopPrograms);
test.after.always(() => versions.close());

const requestToken = (server: TestService, app: TestOrganization) =>
  postAsClient(server, "token", app, { grant_type: "client_credentials" });

async function statusOf(server: TestService, path: string, token?: string): Promise<number> {
  const headers = token ? bearer(token) : {};
  return (await fetch(server.url + path, { headers, redirect: "manual" })).status;
}

type Switch = [change: string, switchOff: (app: TestOrganization) => Promise<unknown>, status: number];
const SWITCHES: Switch[] = [
  ["disables a client", ({ id }) => storage.clients.disable(id, null, OPERATOR), 401],
  ["suspends an organization", ({ id }) => storage.suspensions.suspend(id, null, OPERATOR), 403],
];

for (const [change, switchOff, status] of SWITCHES) {
  test(`this version ${change}: the previous one issues it no tokens, and refuses those that it has`, async (t) => {
    const app = await both.createOrganization();
    const token = await old.token(app);
    for (const server of servers) t.true(await isAcceptedByApi(server, token));
    await switchOff(app);
    for (const server of servers) {
      t.is((await requestToken(server, app)).status, 400);
      t.is(await statusOf(server, "/v1/organization", token), status);
    }
  });
}

const LINK_SWITCHES: Record<string, (app: TestOrganization, link: LinkBody) => Promise<unknown>> = {
  "disables a link": (_, { id }) => storage.disabledLinks.disable(id, null, OPERATOR),
  "suspends a link's organization": ({ id }) => storage.suspensions.suspend(id, null, OPERATOR),
};

for (const [change, switchOff] of Object.entries(LINK_SWITCHES)) {
  test(`this version ${change}: the previous one no longer redirects`, async (t) => {
    const app = await both.createOrganization();
    const link = await apiAt(old.url, await old.token(app)).createLink();
    for (const server of servers) t.is(await statusOf(server, `/${link.slug}`), 302);
    await switchOff(app, link);
    for (const server of servers) t.is(await statusOf(server, `/${link.slug}`), 410);
  });
}

test("this version disables a user: the previous one refuses the user, too", async (t) => {
  const user = await both.createUser([]);
  const token = await firstPartyToken(old, user);
  for (const server of servers) t.is(await statusOf(server, "/dashboard/me", token), 200);
  await storage.disabledAccounts.disable(user.id, null, OPERATOR);
  for (const server of servers) {
    t.is(await statusOf(server, "/dashboard/me", token), 401);
    t.is((await logIn(server, user)).status, 401);
  }
});

test("this version adds an authenticator app: the previous one asks for its code", async (t) => {
  const user = await both.createUser([]);
  await addTotp(current, { ...user, token: await firstPartyToken(current, user) });
  for (const server of servers) t.is((await logIn(server, user)).status, 403);
});

test("this version creates a webhook: the previous one shows its URL", async (t) => {
  const app = await both.createOrganization();
  const json = { url: "http://127.0.0.1:9/private", events: ["link.created"] };
  const token = await old.token(app);
  const created = await apiAt(current.url, token).send<{ id: string }>("POST", "/v1/webhooks", { json });
  t.is(created.status, 201);
  const shown = await fetch(`${old.url}/v1/webhooks/${created.body.id}`, { headers: bearer(token) });
  t.like(await shown.json(), { url: json.url });
});

test("this version issues a token: the previous one accepts it", async (t) => {
  const app = await both.createOrganization();
  const token = await current.token(app);
  for (const server of servers) t.true(await isAcceptedByApi(server, token));
});

test("the previous version creates a link: it counts toward the quota", async (t) => {
  const app = await both.createOrganization();
  const token = await old.token(app);
  for (const { url } of servers) await apiAt(url, token).createLink();
  t.is((await storage.links.usage(app.id)).links, 2);
});
