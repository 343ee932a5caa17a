import test from "ava";
import { OPERATOR } from "../../resources/events/types.ts";
import { apiAt } from "../harness/clients/api.ts";
import {
  authorizeUrl,
  createApp,
  isAcceptedByApi,
  postAsClient,
  refresh,
  runCodeFlow,
} from "../harness/clients/oauth.ts";
import { TestBrowser } from "../harness/clients/test-browser.ts";
import { startCluster } from "../harness/cluster.ts";
import { rounds } from "../harness/rounds.ts";
import { bearer, type TestOrganization, type TestService } from "../harness/service.ts";

export const databases = "all";

const cluster = await startCluster();
const { storage } = cluster;
test.after.always(() => cluster.close());

const ROUNDS = rounds(5, 20);
const servers = (round: number) => {
  const [one, other] = cluster.authorization;
  return round % 2 ? { here: other, there: one } : { here: one, there: other };
};

async function statuses(token: string, path = "/v1/organization"): Promise<number[]> {
  const answers = cluster.resources.map(({ url }) => fetch(url + path, { headers: bearer(token) }));
  return (await Promise.all(answers)).map(({ status }) => status);
}

const requestToken = (server: TestService, app: TestOrganization) =>
  postAsClient(server, "token", app, { grant_type: "client_credentials" });

test.serial("a revocation at one server takes effect at the next request to every other one", async (t) => {
  const { app, user } = await createApp(cluster);
  const browser = new TestBrowser(cluster.url);
  for (let round = 0; round < ROUNDS; round++) {
    const { here, there } = servers(round);
    const { accessToken, refreshToken } = await runCodeFlow(cluster, app, user, { browser });
    t.deepEqual(await statuses(accessToken), [200, 200]);
    t.is(
      (await postAsClient(here, "revoke", app, { token: round % 3 ? accessToken : refreshToken })).status,
      200,
    );
    t.deepEqual(await statuses(accessToken), [401, 401]);
    t.deepEqual((await postAsClient(there, "introspect", app, { token: accessToken })).body, {
      active: false,
    });
    t.is((await refresh(there, app, refreshToken)).body.error, "invalid_grant");

    const own = await here.token(app);
    t.deepEqual(await statuses(own), [200, 200]);
    t.is((await postAsClient(there, "revoke", app, { token: own })).status, 200);
    t.deepEqual(await statuses(own), [401, 401]);
    t.deepEqual((await postAsClient(here, "introspect", app, { token: own })).body, { active: false });
  }
});

test.serial("a downgrade or upgrade takes effect at the next request to every server", async (t) => {
  const app = await cluster.createOrganization();
  const token = await cluster.token(app);
  for (let round = 0; round < ROUNDS; round++) {
    t.deepEqual(await statuses(token), [200, 200]);
    await storage.organizations.setPlan(app.id, "free", OPERATOR);
    t.deepEqual(await statuses(token), [403, 403]);
    for (const server of cluster.authorization) {
      t.is((await requestToken(server, app)).body.error, "unauthorized_client");
      t.deepEqual((await postAsClient(server, "introspect", app, { token })).body, { active: false });
    }
    await storage.organizations.setPlan(app.id, "growth", OPERATOR);
    for (const server of cluster.authorization) t.is((await requestToken(server, app)).status, 200);
  }
});

test.serial("of tokens issued during a suspension, every server rejects each one afterwards", async (t) => {
  const { app, own, user } = await createApp(cluster);
  const { accessToken } = await runCodeFlow(cluster, app, user);
  for (let round = 0; round < ROUNDS; round++) {
    const pending = Array.from({ length: 20 }, (_, index) =>
      requestToken(cluster.authorization[index % 2] as TestService, app),
    );
    await pending[round];
    await storage.suspensions.suspend(app.id, null, OPERATOR);
    const issued = (await Promise.all(pending)).flatMap(({ body }) => body.access_token ?? []);
    t.true(issued.length > 0);
    const answers = await Promise.all([accessToken, ...issued.map(String)].map((token) => statuses(token)));
    t.deepEqual(new Set(answers.flat()), new Set([403]));
    for (const server of cluster.authorization) {
      t.is((await requestToken(server, app)).body.error, "unauthorized_client");
    }
    await storage.suspensions.resume(app.id, OPERATOR);
    t.deepEqual(await statuses(accessToken), [200, 200]);
  }
  await storage.suspensions.suspend(own.id, null, OPERATOR);
  t.deepEqual(await statuses(accessToken), [403, 403]);
  await storage.suspensions.resume(own.id, OPERATOR);
});

test.serial(
  "a changed, disabled or deleted link redirects accordingly at every server with the next request",
  async (t) => {
    const app = await cluster.createOrganization();
    const token = await cluster.token(app);
    const servers = [...cluster.authorization, ...cluster.resources];
    const expectAll = async (slug: string, expected: string | number) => {
      const answers = servers.map(({ url }) => fetch(`${url}/${slug}`, { redirect: "manual" }));
      for (const { status, headers } of await Promise.all(answers))
        t.is(headers.get("location") ?? status, expected);
    };
    for (let round = 0; round < ROUNDS; round++) {
      const api = apiAt((servers[round % servers.length] as TestService).url, token);
      const { id, slug } = await api.createLink({ url: "https://example.com/first" });
      await expectAll(slug, "https://example.com/first");
      await api.send("PATCH", `/v1/links/${id}`, { json: { url: "https://example.com/second" } });
      await expectAll(slug, "https://example.com/second");
      await storage.disabledLinks.disable(id, null, OPERATOR);
      await expectAll(slug, 410);
      await storage.disabledLinks.enable(id, OPERATOR);
      await expectAll(slug, "https://example.com/second");
      await storage.suspensions.suspend(app.id, null, OPERATOR);
      await expectAll(slug, 410);
      await storage.suspensions.resume(app.id, OPERATOR);
      await expectAll(slug, "https://example.com/second");
      await api.send("DELETE", `/v1/links/${id}`);
      await expectAll(slug, 410);
    }
  },
);

test.serial("a disabled client or user is rejected by every server with the next request", async (t) => {
  const { app, user } = await createApp(cluster);
  const { accessToken, refreshToken } = await runCodeFlow(cluster, app, user);
  const token = await cluster.token(app);
  await storage.clients.disable(app.id, null, OPERATOR);
  for (const one of [token, accessToken]) t.deepEqual(await statuses(one), [401, 401]);
  for (const server of cluster.authorization) {
    t.is((await requestToken(server, app)).body.error, "unauthorized_client");
    t.deepEqual((await postAsClient(server, "introspect", app, { token })).body, { active: false });
  }
  await storage.clients.enable(app.id, OPERATOR);
  for (const one of [token, accessToken]) t.deepEqual(await statuses(one), [200, 200]);
  await storage.disabledAccounts.disable(user.id, null, OPERATOR);
  t.deepEqual(await statuses(accessToken), [401, 401]);
  t.deepEqual(await statuses(token), [200, 200]);
  for (const server of cluster.authorization) {
    t.is((await refresh(server, app, refreshToken)).body.error, "invalid_grant");
  }
});

test.serial("after a compromised rotation every server rejects the old secret and old tokens", async (t) => {
  const created = await createApp(cluster);
  const { user } = created;
  let { app } = created;
  const browser = new TestBrowser(cluster.url);
  for (let round = 0; round < ROUNDS; round++) {
    const { accessToken, refreshToken } = await runCodeFlow(cluster, app, user, { browser });
    const token = await servers(round).here.token(app);
    const rotation = await storage.clients.rotateSecret(
      app.id,
      { overlapMs: 3_600_000, compromised: true },
      OPERATOR,
    );
    for (const server of cluster.authorization) {
      const rejected = await requestToken(server, app);
      t.is(rejected.status, 401);
      t.is(rejected.body.error, "invalid_client");
    }
    app = { ...app, clientSecret: rotation?.clientSecret as string };
    for (const old of [token, accessToken]) t.deepEqual(await statuses(old), [401, 401]);
    for (const server of cluster.authorization) {
      t.is((await refresh(server, app, refreshToken)).body.error, "invalid_grant");
      t.deepEqual(await statuses(await server.token(app)), [200, 200]);
    }
  }
});

test.serial("after a routine rotation tokens stay valid, and both servers accept both secrets", async (t) => {
  let app = await cluster.createOrganization();
  for (let round = 0; round < ROUNDS; round++) {
    const token = await cluster.token(app);
    const rotation = await storage.clients.rotateSecret(
      app.id,
      { overlapMs: 3_600_000, compromised: false },
      OPERATOR,
    );
    const renewed = { ...app, clientSecret: rotation?.clientSecret as string };
    for (const server of cluster.authorization)
      for (const secret of [app, renewed]) t.is((await requestToken(server, secret)).status, 200);
    t.deepEqual(await statuses(token), [200, 200]);
    const third = await storage.clients.rotateSecret(
      app.id,
      { overlapMs: 3_600_000, compromised: false },
      OPERATOR,
    );
    for (const server of cluster.authorization) t.is((await requestToken(server, app)).status, 401);
    app = { ...app, clientSecret: third?.clientSecret as string };
  }
});

test.serial(
  "replaced redirect URIs are rejected, and new ones accepted, by both servers immediately",
  async (t) => {
    const { app } = await createApp(cluster);
    let current = "https://app.example.com/callback";
    for (let round = 0; round < ROUNDS; round++) {
      const next = `https://app.example.com/callback/${round}`;
      await storage.clients.setRedirectUris(app.id, [next], OPERATOR);
      for (const server of cluster.authorization) {
        const open = (redirect_uri: string) =>
          fetch(authorizeUrl(server, app, { redirect_uri }), { redirect: "manual" });
        t.is((await open(current)).status, 400);
        const accepted = await open(next);
        t.is(accepted.status, 303);
        t.regex(accepted.headers.get("location") ?? "", /\/interaction\//);
      }
      current = next;
    }
  },
);

test.serial(
  "a token without the scope or for another resource is rejected by both resource servers",
  async (t) => {
    const app = await cluster.createOrganization();
    const narrow = await cluster.token(app, { scope: "webhooks:read" });
    t.deepEqual(await statuses(narrow, "/v1/links"), [403, 403]);
    const forMcp = await cluster.token(app, { resource: `${cluster.url}/mcp` });
    t.deepEqual(await statuses(forMcp, "/v1/links"), [401, 401]);
    for (const server of cluster.resources) t.false(await isAcceptedByApi(server, "lga_nothing"));
  },
);
