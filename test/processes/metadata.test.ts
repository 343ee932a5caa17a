import test from "ava";
import { startCluster } from "../harness/cluster.ts";

const cluster = await startCluster();
test.after.always(() => cluster.close());

const AUTHORIZATION = [
  "/.well-known/oauth-authorization-server",
  "/.well-known/openid-configuration",
  "/oauth/jwks",
];
const RESOURCES = ["", "/v1", "/mcp"].map((path) => `/.well-known/oauth-protected-resource${path}`);

async function read(url: string, path: string) {
  const answer = await fetch(url + path);
  return { status: answer.status, document: (await answer.json()) as Record<string, unknown> };
}

for (const path of AUTHORIZATION) {
  test(`both authorization servers serve the same ${path}`, async (t) => {
    const [one, other] = await Promise.all(cluster.authorization.map(({ url }) => read(url, path)));
    t.is(one?.status, 200);
    t.deepEqual(other, one);
  });
}

for (const path of RESOURCES) {
  test(`all four servers serve the same ${path}`, async (t) => {
    const servers = [...cluster.authorization, ...cluster.resources];
    const [first, ...others] = await Promise.all(servers.map(({ url }) => read(url, path)));
    t.is(first?.status, 200);
    for (const other of others) t.deepEqual(other, first);
    t.deepEqual(first?.document.authorization_servers, [cluster.url]);
  });
}

test("every URL in the metadata has the common base URL", async (t) => {
  const { document } = await read(cluster.url, "/.well-known/oauth-authorization-server");
  t.is(document.issuer, cluster.url);
  for (const [name, value] of Object.entries(document)) {
    if (/_(endpoint|uri)$/.test(name)) t.true(String(value).startsWith(`${cluster.url}/`), name);
  }
});

test("resource servers have no OAuth endpoints", async (t) => {
  for (const { url } of cluster.resources) {
    const form = { method: "POST", body: new URLSearchParams({ grant_type: "client_credentials" }) };
    t.is((await fetch(`${url}/oauth/token`, form)).status, 404);
    t.is((await fetch(`${url}/.well-known/oauth-authorization-server`)).status, 404);
  }
});

test("every server is ready when the proxy selects it by header", async (t) => {
  for (const index of [0, 1]) {
    const headers = { "x-backend": String(index) };
    t.is((await fetch(`${cluster.url}/readyz`, { headers })).status, 200);
    t.is((await fetch(`${cluster.url}/v1/organization`, { headers })).status, 401);
  }
});
