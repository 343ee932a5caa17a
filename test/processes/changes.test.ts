import test from "ava";
import { OPERATOR } from "../../resources/events.ts";
import { startCluster } from "../harness/cluster.ts";
import { ask, authorizeUrl, createApp, newTokens, opensApi, refresh } from "../harness/oauth.ts";
import { Person } from "../harness/person.ts";
import { bearer, type TestOrganization, type TestService } from "../harness/service.ts";

const cluster = await startCluster();
const { storage } = cluster;
test.after.always(() => cluster.close());

const ROUNDS = 20;
const servers = (round: number) => {
  const [one, other] = cluster.authorization;
  return round % 2 ? { here: other, there: one } : { here: one, there: other };
};

async function statuses(token: string, path = "/v1/organization"): Promise<number[]> {
  const answers = cluster.resources.map(({ url }) => fetch(url + path, { headers: bearer(token) }));
  return (await Promise.all(answers)).map(({ status }) => status);
}

const askForToken = (server: TestService, app: TestOrganization) =>
  ask(server, "token", app, { grant_type: "client_credentials" });

test.serial("a revocation at one server holds at the next request of every other one", async (t) => {
  const { app, user } = await createApp(cluster);
  const person = new Person(cluster.url);
  for (let round = 0; round < ROUNDS; round++) {
    const { here, there } = servers(round);
    const { accessToken, refreshToken } = await newTokens(cluster, app, user, { person });
    t.deepEqual(await statuses(accessToken), [200, 200]);
    t.is((await ask(here, "revoke", app, { token: round % 3 ? accessToken : refreshToken })).status, 200);
    t.deepEqual(await statuses(accessToken), [401, 401]);
    t.deepEqual((await ask(there, "introspect", app, { token: accessToken })).body, { active: false });
    t.is((await refresh(there, app, refreshToken)).body.error, "invalid_grant");

    const own = await here.token(app);
    t.deepEqual(await statuses(own), [200, 200]);
    t.is((await ask(there, "revoke", app, { token: own })).status, 200);
    t.deepEqual(await statuses(own), [401, 401]);
    t.deepEqual((await ask(here, "introspect", app, { token: own })).body, { active: false });
  }
});

test.serial("a plan that ends, or is paid again, holds at the next request of every server", async (t) => {
  const app = await cluster.createOrganization();
  const token = await cluster.token(app);
  for (let round = 0; round < ROUNDS; round++) {
    t.deepEqual(await statuses(token), [200, 200]);
    await storage.organizations.setPlan(app.id, "free", OPERATOR);
    t.deepEqual(await statuses(token), [403, 403]);
    for (const server of cluster.authorization) {
      t.is((await askForToken(server, app)).body.error, "unauthorized_client");
      t.deepEqual((await ask(server, "introspect", app, { token })).body, { active: false });
    }
    await storage.organizations.setPlan(app.id, "growth", OPERATOR);
    for (const server of cluster.authorization) t.is((await askForToken(server, app)).status, 200);
  }
});

test.serial("after a compromised rotation no server takes the old secret or an old token", async (t) => {
  const created = await createApp(cluster);
  const { user } = created;
  let { app } = created;
  const person = new Person(cluster.url);
  for (let round = 0; round < ROUNDS; round++) {
    const { accessToken, refreshToken } = await newTokens(cluster, app, user, { person });
    const token = await servers(round).here.token(app);
    const rotation = await storage.clients.rotateSecret(
      app.id,
      { overlapMs: 3_600_000, compromised: true },
      OPERATOR,
    );
    for (const server of cluster.authorization) {
      const refused = await askForToken(server, app);
      t.is(refused.status, 401);
      t.is(refused.body.error, "invalid_client");
    }
    app = { ...app, clientSecret: rotation?.clientSecret as string };
    for (const old of [token, accessToken]) t.deepEqual(await statuses(old), [401, 401]);
    for (const server of cluster.authorization) {
      t.is((await refresh(server, app, refreshToken)).body.error, "invalid_grant");
      t.deepEqual(await statuses(await server.token(app)), [200, 200]);
    }
  }
});

test.serial("an ordinary rotation leaves tokens alone, and both secrets work at both servers", async (t) => {
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
      for (const secret of [app, renewed]) t.is((await askForToken(server, secret)).status, 200);
    t.deepEqual(await statuses(token), [200, 200]);
    const third = await storage.clients.rotateSecret(
      app.id,
      { overlapMs: 3_600_000, compromised: false },
      OPERATOR,
    );
    for (const server of cluster.authorization) t.is((await askForToken(server, app)).status, 401);
    app = { ...app, clientSecret: third?.clientSecret as string };
  }
});

test.serial(
  "redirect URIs that were replaced are refused, and the new ones taken, by both servers at once",
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
        const taken = await open(next);
        t.is(taken.status, 303);
        t.regex(taken.headers.get("location") ?? "", /\/interaction\//);
      }
      current = next;
    }
  },
);

test.serial("a token without its scope, or for another resource, is refused alike by both", async (t) => {
  const app = await cluster.createOrganization();
  const narrow = await cluster.token(app, { scope: "webhooks:read" });
  t.deepEqual(await statuses(narrow, "/v1/links"), [403, 403]);
  const elsewhere = await cluster.token(app, { resource: `${cluster.url}/mcp` });
  t.deepEqual(await statuses(elsewhere, "/v1/links"), [401, 401]);
  for (const server of cluster.resources) t.false(await opensApi(server, "lga_nothing"));
});
