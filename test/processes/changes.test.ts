import test from "ava";
import { apiAt, isProblem, type LinkBody } from "../harness/clients/api.ts";
import { runCodeFlow } from "../harness/clients/authorization.ts";
import { authorizeUrl, createApp } from "../harness/clients/authorization-request.ts";
import { connectUntilEnd, postMcp, refusalOf } from "../harness/clients/mcp.ts";
import { postAsClient, refresh } from "../harness/clients/oauth.ts";
import { startCluster } from "../harness/cluster.ts";
import { rounds } from "../harness/rounds.ts";
import { bearer, OPERATOR, postForm, type TestService } from "../harness/service.ts";
import { createWebhook, type NewWebhookBody, startReceiver, verify } from "../harness/webhooks.ts";

export const databases = "all";

const receiver = await startReceiver();
const cluster = await startCluster({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });
const { storage, authorization, resources } = cluster;
const servers = [...authorization, ...resources];

const ROUNDS = rounds(2, 10);
const REVOCATIONS = rounds(10, 20);
const COMPROMISED = { overlapMs: 3_600_000, compromised: true };
const CREDENTIALS = { grant_type: "client_credentials" };
const TARGET = "https://example.com/first";

/** What every server of a kind says; all of it if they disagree. */
async function saidBy<Said>(members: TestService[], ask: (server: TestService) => Promise<Said>) {
  const said = await Promise.all(members.map(ask));
  return new Set(said).size === 1 ? said[0] : said;
}

async function createSubject() {
  const { app, own, user } = await createApp(cluster);
  const tokens = await runCodeFlow(cluster, app, user);
  const token = await cluster.token(app);
  const link = await apiAt(cluster.url, token).createLink({ url: TARGET });
  return { app, own, user, ...tokens, token, link };
}

type Subject = Awaited<ReturnType<typeof createSubject>>;

const statusOf = async (url: string, token: string) => (await fetch(url, { headers: bearer(token) })).status;
async function look({ app, accessToken, refreshToken, token }: Subject) {
  const callApi = (one: string) => saidBy(resources, ({ url }) => statusOf(`${url}/v1/organization`, one));
  const ask = async (asked: ReturnType<typeof postAsClient>) => {
    const { status, body } = await asked;
    return body.error ?? body.active ?? status;
  };
  return {
    ownToken: await callApi(token),
    userToken: await callApi(accessToken),
    tokenRequest: await saidBy(authorization, (at) => ask(postAsClient(at, "token", app, CREDENTIALS))),
    refresh: await saidBy(authorization, (at) => ask(refresh(at, app, refreshToken))),
    introspection: await saidBy(authorization, (at) => ask(postAsClient(at, "introspect", app, { token }))),
    authorization: await saidBy(authorization, async (at) => {
      return (await fetch(authorizeUrl(at, app), { redirect: "manual" })).status;
    }),
  };
}

const WORKING = {
  ownToken: 200,
  userToken: 200,
  tokenRequest: 200,
  refresh: 200,
  introspection: true,
  authorization: 303,
};

type Change = {
  make(subject: Subject, issuer: TestService): Promise<unknown>;
  /** What differs afterwards. */
  seen: Partial<Record<keyof typeof WORKING, unknown>>;
  undo?(subject: Subject): Promise<unknown>;
};

const FORBIDDEN = { ownToken: 403, userToken: 403 };
const REVOKED = { ownToken: 401, userToken: 401 };
const UNAUTHORIZED = {
  tokenRequest: "unauthorized_client",
  refresh: "unauthorized_client",
  introspection: false,
};

const CHANGES: Record<string, Change> = {
  "the revocation of an access token": {
    make: ({ app, accessToken }, issuer) => postAsClient(issuer, "revoke", app, { token: accessToken }),
    seen: { userToken: 401, refresh: "invalid_grant" },
  },
  "a downgrade": {
    make: ({ app }) => storage.organizations.setPlan(app.id, "free", OPERATOR),
    seen: { ...FORBIDDEN, ...UNAUTHORIZED },
    undo: ({ app }) => storage.organizations.setPlan(app.id, "growth", OPERATOR),
  },
  "the suspension of the user's organization": {
    make: ({ own }) => storage.suspensions.suspend(own.id, null, OPERATOR),
    seen: { userToken: 403, refresh: "unauthorized_client" },
    undo: ({ own }) => storage.suspensions.resume(own.id, OPERATOR),
  },
  "a disabled client": {
    make: ({ app }) => storage.clients.disable(app.id, null, OPERATOR),
    seen: { ...REVOKED, ...UNAUTHORIZED },
    undo: ({ app }) => storage.clients.enable(app.id, OPERATOR),
  },
  "a disabled user": {
    make: ({ user }) => storage.disabledAccounts.disable(user.id, null, OPERATOR),
    seen: { userToken: 401, refresh: "invalid_grant" },
  },
  "the rotation of a compromised secret": {
    make: ({ app }) => storage.clients.rotateSecret(app.id, COMPROMISED, OPERATOR),
    seen: {
      ...REVOKED,
      tokenRequest: "invalid_client",
      refresh: "invalid_client",
      introspection: "invalid_client",
    },
  },
  "replaced redirect URIs": {
    make: ({ app }) => storage.clients.setRedirectUris(app.id, ["https://app.example.com/next"], OPERATOR),
    seen: { authorization: 400 },
  },
};

for (const [what, { make, seen, undo }] of Object.entries(CHANGES))
  test.serial(`${what} counts on the next request to every server`, async (t) => {
    for (let round = 0; round < ROUNDS; round++) {
      const subject = await createSubject();
      t.deepEqual<unknown, unknown>(await look(subject), WORKING);
      await make(subject, authorization[round % 2] as TestService);
      t.deepEqual<unknown, unknown>(await look(subject), { ...WORKING, ...seen });
      if (!undo) continue;
      await undo(subject);
      t.deepEqual<unknown, unknown>(await look(subject), WORKING);
    }
  });

test.serial("of calls that race revocations, none that began later succeeds", async (t) => {
  const app = await cluster.createOrganization();
  for (let round = 0; round < REVOCATIONS; round++) {
    const token = await cluster.token(app);
    const accepted: number[] = [];
    const isAccepted = Promise.withResolvers<void>();
    let revokedAt = Number.POSITIVE_INFINITY;
    const lanes = Array.from({ length: 10 }, async (_, lane) => {
      for (let call = lane; ; call++) {
        const began = Date.now();
        const status = await statusOf(`${(resources[call % 2] as TestService).url}/v1/organization`, token);
        if (status !== 200) return;
        accepted.push(began);
        isAccepted.resolve();
        if (began > revokedAt) return;
      }
    });
    await Promise.race([isAccepted.promise, Promise.all(lanes)]);
    await postAsClient(authorization[round % 2] as TestService, "revoke", app, { token });
    revokedAt = Date.now();
    await Promise.all(lanes);
    t.true(accepted.length > 0);
    const late = accepted.filter((at) => at > revokedAt);
    t.deepEqual(late, []);
  }
});

test.serial("both resource servers reject a token without the scope or for another resource", async (t) => {
  const app = await cluster.createOrganization();
  const narrow = await cluster.token(app, { scope: "webhooks:read" });
  t.is(await saidBy(resources, ({ url }) => statusOf(`${url}/v1/links`, narrow)), 403);
  const forMcp = await cluster.token(app, { resource: `${cluster.url}/mcp` });
  t.is(await saidBy(resources, ({ url }) => statusOf(`${url}/v1/links`, forMcp)), 401);
});

test.serial("an agent's tools and their questions work at servers in turn", async (t) => {
  const token = await cluster.token(await cluster.createOrganization());
  const accept = () => ({ action: "accept", content: {} }) as const;
  const agent = await connectUntilEnd(t, `${cluster.url}/mcp`, token, undefined, accept);
  const call = (name: string, args: object) => agent.callTool({ name, arguments: { ...args } });
  const { structuredContent } = await call("create_link", { url: TARGET });
  const { id } = structuredContent as LinkBody;
  t.like((await call("get_link", { id })).structuredContent, { id });
  // One server asks, the other gets the answer.
  t.deepEqual((await call("delete_link", { id })).structuredContent, { deleted: true, id });
  t.is(refusalOf(await call("get_link", { id }))?.code, "not_found");
});

test.serial("a webhook that is created, changed or deleted counts on the other server", async (t) => {
  const token = await cluster.token(await cluster.createOrganization());
  const apis = resources.map(({ url }) => apiAt(url, token));
  for (const [round, here] of apis.entries()) {
    const there = apis[1 - round] as typeof here;
    const [created, moved] = [`/created-${round}`, `/moved-${round}`];
    const webhook = await createWebhook(here, receiver.url(created));
    await there.createLink();
    await receiver.waitFor(created, 1);
    await here.send("PATCH", `/v1/webhooks/${webhook.id}`, { json: { url: receiver.url(moved) } });
    const rotated = await there.send<NewWebhookBody>("POST", `/v1/webhooks/${webhook.id}/rotate-secret`);
    await there.createLink();
    const [request] = await receiver.waitFor(moved, 1);
    if (!request) return t.fail();
    for (const secret of [webhook.secret, rotated.body.secret]) t.truthy(verify(request, secret));
    t.is((await there.send("DELETE", `/v1/webhooks/${webhook.id}`)).status, 204);
    await here.createLink();
    t.is(receiver.received(created).length, 1);
    t.is(receiver.received(moved).length, 1);
  }
});

const METADATA = "/.well-known/oauth-authorization-server";
const RESOURCES = ["", "/v1", "/mcp"].map((path) => `/.well-known/oauth-protected-resource${path}`);

test("every server has the same metadata, with the common base URL", async (t) => {
  const read = async (url: string) => (await fetch(url)).text();
  for (const path of [METADATA, "/.well-known/openid-configuration", "/oauth/jwks"])
    t.is(typeof (await saidBy(authorization, ({ url }) => read(url + path))), "string", path);
  for (const path of RESOURCES) {
    const document = await saidBy(servers, ({ url }) => read(url + path));
    t.deepEqual(JSON.parse(String(document)).authorization_servers, [cluster.url]);
  }
  const metadata = JSON.parse(await read(cluster.url + METADATA));
  t.is(metadata.issuer, cluster.url);
  for (const [name, value] of Object.entries(metadata))
    if (/_(endpoint|uri)$/.test(name)) t.true(String(value).startsWith(`${cluster.url}/`), name);
});

test("resource servers have no OAuth endpoints", async (t) => {
  t.is(await saidBy(resources, async ({ url }) => (await postForm(`${url}/oauth/token`, {})).status), 404);
  t.is(await saidBy(resources, async ({ url }) => (await fetch(url + METADATA)).status), 404);
});

// Must be the last, because it stops servers.
test.serial("resource servers respond 503 while no authorization server runs, and recover", async (t) => {
  const { token, link } = await createSubject();
  const LIST = { jsonrpc: "2.0", id: 1, method: "tools/list" };
  await Promise.all(authorization.map((server) => server.stop()));
  for (const { url } of resources) {
    const answers = await Promise.all([
      apiAt(url, token).get("/v1/links"),
      apiAt(url, token).send("POST", "/v1/links", { json: { url: "https://example.com/" } }),
      apiAt(url, "lga_nobody").get("/v1/links"),
      postMcp(`${url}/mcp`, LIST, bearer(token)),
    ]);
    for (const answer of answers) {
      isProblem(t, answer as (typeof answers)[0], { status: 503, code: "temporarily_unavailable" });
      t.regex(answer.headers.get("retry-after") ?? "", /^\d+$/);
      t.is(answer.headers.get("www-authenticate"), null);
    }
    // Requests without a token don't need an authorization server.
    t.is((await apiAt(url).get(`/${link.slug}`)).status, 302);
    t.is((await apiAt(url).get("/v1/links")).status, 401);
    t.is((await apiAt(url).get("/healthz")).status, 200);
  }
  await Promise.all(authorization.map((server) => server.start()));
  for (const { url } of resources) {
    t.is(await statusOf(`${url}/v1/organization`, token), 200);
    t.is((await postMcp(`${url}/mcp`, LIST, bearer(token))).status, 200);
    t.is(await statusOf(`${url}/v1/organization`, "lga_nobody"), 401);
  }
});
