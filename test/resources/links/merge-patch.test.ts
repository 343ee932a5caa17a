import test from "ava";
import { apiAt, isProblem, type LinkBody } from "../../harness/clients/api.ts";
import { startTestService } from "../../harness/service.ts";

export const databases = "all";

const service = await startTestService();
const api = apiAt(service.url, await service.token(await service.createOrganization()));
test.after.always(() => service.close());

const METADATA = { kept: "a", changed: 1, removed: true, empty: null };

async function patch(type: string, metadata: object) {
  const { id } = await api.createLink({ metadata: METADATA, title: "Title", tags: ["a"] });
  const body = JSON.stringify({ metadata, title: null, tags: ["b"] });
  const headers = { "content-type": type };
  return api.send<LinkBody>("PATCH", `/v1/links/${id}`, { body, headers });
}

test("a merge patch sets the keys of the metadata, removes those that are null, and keeps the others", async (t) => {
  const changes = { changed: 2, removed: null, added: "b", unknown: null };
  const { status, body } = await patch("application/merge-patch+json", changes);
  t.is(status, 200);
  t.deepEqual(body.metadata, { kept: "a", changed: 2, empty: null, added: "b" });
  t.is(body.title, null);
  t.deepEqual(body.tags, ["b"], "an array is replaced (RFC 7396 §1)");
});

test("a patch as plain JSON replaces the metadata", async (t) => {
  const { body } = await patch("application/json", { changed: 2, removed: null });
  t.deepEqual(body.metadata, { changed: 2, removed: null });
});

test("a merge patch can't exceed the limits of the metadata", async (t) => {
  const many = Object.fromEntries(Array.from({ length: 48 }, (_, key) => [`key${key}`, "x"]));
  const reply = await patch("application/merge-patch+json", many);
  isProblem(t, reply, { status: 422, code: "invalid_metadata", fields: ["metadata"] });
  t.is((await patch("application/merge-patch+json", { ...many, removed: null, changed: null })).status, 200);
});

test("concurrent merge patches of different keys all take effect", async (t) => {
  const { id } = await api.createLink();
  const headers = { "content-type": "application/merge-patch+json" };
  await Promise.all(
    Array.from({ length: 10 }, (_, key) =>
      api.send("PATCH", `/v1/links/${id}`, { body: JSON.stringify({ metadata: { [key]: key } }), headers }),
    ),
  );
  const { body } = await api.get<LinkBody>(`/v1/links/${id}`);
  t.is(Object.keys(body.metadata).length, 10);
});
