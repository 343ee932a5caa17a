import { randomBytes } from "node:crypto";
import test from "ava";
import { openDatabase } from "../../../adapters/database/index.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { limitsOf, ORGANIZATIONS_PER_USER } from "../../../resources/plans.ts";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { startTestService } from "../../harness/service.ts";

const { url, drop } = await createTestDatabase();
const service = await startTestService({
  DATABASE_URL: url,
  ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
});
const database = openDatabase(url);
test.after.always(async () => {
  await database.close();
  await service.close();
  await drop();
});

type BulkBody = { results: { status: number; error?: { code: string; detail: string } }[] };
type OrganizationBody = { limits: Record<string, number>; usage: Record<string, number> };

/** Creates an organization with room for `room` links, as if it had the others. */
async function createNearlyFull(room: number) {
  const app = await service.createOrganization();
  const links = limitsOf("growth").links - room;
  await database
    .knex("organization_usage")
    .where({ organization_id: app.id, slot: 7 })
    .update({ links, max_links: links });
  return { app, api: apiAt(service.url, await service.token(app)) };
}

const json = { url: "https://example.com/" };

test("a link above the quota is refused with the name and the limit of the quota", async (t) => {
  const { api } = await createNearlyFull(1);
  t.is((await api.send("POST", "/v1/links", { json })).status, 201);
  const reply = await api.send("POST", "/v1/links", { json });
  isProblem(t, reply, { status: 403, code: "quota_exceeded" });
  t.regex(reply.body.detail, /1,000,000 links/);
  const upsert = await api.send("PUT", "/v1/links/by-external-id/new", { json });
  isProblem(t, upsert, { status: 403, code: "quota_exceeded" });
});

test("a bulk request creates as many links as the quota has room for", async (t) => {
  const { api } = await createNearlyFull(3);
  const links = Array.from({ length: 10 }, () => json);
  const { status, body } = await api.send<BulkBody>("POST", "/v1/links/bulk", { json: { links } });
  t.is(status, 200);
  t.is(body.results.filter((result) => result.status === 201).length, 3);
  const refused = body.results.filter((result) => result.status === 403);
  t.is(refused.length, 7);
  t.true(refused.every(({ error }) => error?.code === "quota_exceeded"));
});

test("concurrent requests of all kinds together stay within the quota", async (t) => {
  const { api } = await createNearlyFull(5);
  const replies = await Promise.all([
    ...Array.from({ length: 10 }, () => api.send("POST", "/v1/links", { json })),
    ...Array.from({ length: 3 }, () =>
      api.send("POST", "/v1/links/bulk", { json: { links: [json, json, json] } }),
    ),
    ...Array.from({ length: 5 }, (_, index) =>
      api.send("PUT", `/v1/links/by-external-id/${index}`, { json }),
    ),
  ]);
  t.true(replies.every(({ status }) => [200, 201, 403].includes(status)));
  const { body } = await api.get<OrganizationBody>("/v1/organization");
  t.is(body.usage.links, body.limits.links);
});

test("usage is counted with each change, without counting the links", async (t) => {
  const app = await service.createOrganization();
  const api = apiAt(service.url, await service.token(app));
  const { id } = await api.createLink({ title: "counted" });
  await api.createLink();
  const statements: string[] = [];
  const stop = service.storage.onStatement((sql) => statements.push(sql));
  const { body } = await api.get<OrganizationBody>("/v1/organization");
  stop();
  t.false(statements.some((sql) => /count\(.*from .links./.test(sql)));
  t.is(body.usage.links, 2);
  t.true((body.usage.link_bytes as number) > 0);
  await api.send("DELETE", `/v1/links/${id}`);
  t.is((await api.get<OrganizationBody>("/v1/organization")).body.usage.links, 1);
});

test("a user cannot own more organizations than the quota", async (t) => {
  const user = await service.createUser([]);
  const { organizations } = service.storage;
  for (let count = 0; count < ORGANIZATIONS_PER_USER; count++) {
    await organizations.create(`Own ${count}`, "premium", OPERATOR, user.id);
  }
  const signedIn = await fetch(`${service.url}/auth/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ username: user.username, password: user.password }),
  });
  const { access_token } = (await signedIn.json()) as { access_token: string };
  const reply = await fetch(`${service.url}/dashboard/organizations`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${access_token}` },
    body: JSON.stringify({ name: "One more" }),
  });
  t.is(reply.status, 403);
  t.like(await reply.json(), { code: "quota_exceeded" });
});
