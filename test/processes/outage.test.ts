import test from "ava";
import { apiAt, isProblem } from "../harness/clients/api.ts";
import { postMcp } from "../harness/clients/mcp.ts";
import { startCluster } from "../harness/cluster.ts";
import { bearer } from "../harness/service.ts";

const cluster = await startCluster();
const app = await cluster.createOrganization();
const token = await cluster.token(app);
const link = await apiAt(cluster.url, token).createLink();
test.after.always(() => cluster.close());

const LIST = { jsonrpc: "2.0", id: 1, method: "tools/list" };

test.serial("resource servers respond 503 while no authorization server runs, and recover", async (t) => {
  await Promise.all(cluster.authorization.map((server) => server.stop()));
  for (const { url } of cluster.resources) {
    const answers = await Promise.all([
      apiAt(url, token).get("/v1/links"),
      apiAt(url, token).send("POST", "/v1/links", { json: { url: "https://example.com/" } }),
      apiAt(url, "lga_nobody").get("/v1/links"),
      postMcp(`${url}/mcp`, LIST, bearer(token)),
    ]);
    for (const answer of answers) {
      isProblem(t, answer as Parameters<typeof isProblem>[1], {
        status: 503,
        code: "temporarily_unavailable",
      });
      t.regex(answer.headers.get("retry-after") ?? "", /^\d+$/);
      t.is(answer.headers.get("www-authenticate"), null);
    }
    // Requests without a token don't need an authorization server.
    t.is((await apiAt(url).get(`/${link.slug}`)).status, 302);
    t.is((await apiAt(url).get("/v1/links")).status, 401);
    t.is((await apiAt(url).get("/healthz")).status, 200);
  }
  await Promise.all(cluster.authorization.map((server) => server.start()));
  for (const { url } of cluster.resources) {
    t.is((await apiAt(url, token).get("/v1/links")).status, 200);
    t.is((await postMcp(`${url}/mcp`, LIST, bearer(token))).status, 200);
    t.is((await apiAt(url, "lga_nobody").get("/v1/links")).status, 401);
  }
});

test.serial("a restarted server keeps all tokens and keys", async (t) => {
  const jwks = async () => (await fetch(`${cluster.url}/oauth/jwks`)).text();
  const before = await jwks();
  for (const server of cluster.authorization) {
    await server.stop();
    await server.start();
    t.is(await jwks(), before);
    t.is(await jwks(), before);
    for (const { url } of cluster.resources) t.is((await apiAt(url, token).get("/v1/links")).status, 200);
  }
});
