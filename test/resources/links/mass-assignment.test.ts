import test from "ava";
import { apiAt, isProblem, type LinkBody } from "../../harness/clients/api.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const app = await service.createOrganization();
const victim = await service.createOrganization();
const api = apiAt(service.url, await service.token(app));
test.after.always(() => service.close());

const unwritable: [field: string, value: unknown][] = [
  ["id", "lnk_00000000000000000000000000"],
  ["clicks", 1000],
  ["last_clicked_at", "2030-01-01T00:00:00Z"],
  ["created_at", "2000-01-01T00:00:00Z"],
  ["updated_at", "2000-01-01T00:00:00Z"],
  ["created_by", "usr_someone"],
  ["short_url", "https://example.com/x"],
  ["organization_id", victim.id],
  ["organizationId", victim.id],
  ["org_id", victim.id],
  ["organization", { id: victim.id, plan: "premium" }],
  ["plan", "premium"],
  ["version", 7],
  ["deleted_at", 1],
  ["deleted", true],
  ["maxClicks", 1],
  ["expiresAt", 1],
  ["redirectType", 301],
  ["externalId", "x"],
  ["createdBy", "x"],
  ["toString", "x"],
  ["hasOwnProperty", "x"],
  ["", "x"],
  ["Url", "https://example.com"],
  ["url ", "https://example.com"],
  ["🎉", 1],
];

for (const [field, value] of unwritable) {
  test(`the field ${JSON.stringify(field)} cannot be written, and the error names it`, async (t) => {
    const created = await api.createLink();
    for (const reply of [
      await api.send("POST", "/v1/links", { json: { url: "https://example.com", [field]: value } }),
      await api.send("PATCH", `/v1/links/${created.id}`, { json: { title: "x", [field]: value } }),
    ]) {
      t.is(reply.status, 422);
      isProblem(t, reply, { status: 422, code: "unknown_field", fields: [field] });
    }
    t.deepEqual((await api.get<LinkBody>(`/v1/links/${created.id}`)).body, created);
  });
}

test("a link cannot be created as archived", async (t) => {
  const reply = await api.send("POST", "/v1/links", { json: { url: "https://example.com", archived: true } });
  isProblem(t, reply, { status: 422, code: "unknown_field", fields: ["archived"] });
});

test("query parameters don't set fields of a new link", async (t) => {
  const json = { url: "https://example.com" };
  const reply = await api.send<LinkBody>(
    "POST",
    `/v1/links?organization_id=${victim.id}&clicks=5&slug=query`,
    { json },
  );
  t.is(reply.body.clicks, 0);
  t.not(reply.body.slug, "query");
  const other = apiAt(service.url, await service.token(victim));
  t.is((await other.get(`/v1/links/${reply.body.id}`)).status, 404);
});
