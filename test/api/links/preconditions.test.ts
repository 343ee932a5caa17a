import test from "ava";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { shareApi } from "../../harness/clients/authorization.ts";
import { atOnce } from "../../harness/database/storage.ts";

export const databases = "all";

const { service, api } = await shareApi();

async function createUpdatedLink() {
  const { id, slug } = await api.createLink();
  const path = `/v1/links/${id}`;
  const old = tagOf(await api.get(path));
  const reply = await api.send("PATCH", path, { json: { title: "changed" } });
  return { path, slug, old, current: tagOf(reply) };
}

const tagOf = ({ headers }: { headers: Headers }): string => headers.get("etag") ?? "";

test("an update changes the strong ETag, which reads return, and a click doesn't", async (t) => {
  const { path, slug, old, current } = await createUpdatedLink();
  t.regex(current, /^"[^"]+"$/);
  t.not(current, old);
  await apiAt(service.url).get(`/${slug}`);
  const reply = await api.get(path);
  t.is(reply.body.clicks, 1);
  t.deepEqual([tagOf(reply), tagOf(await api.send("HEAD", path))], [current, current]);
});

test("concurrent updates of the same version succeed exactly once", async (t) => {
  const { path, current } = await createUpdatedLink();
  const headers = { "if-match": current };
  const replies = await atOnce(20, (n) =>
    api.send("PATCH", path, { json: { title: `change ${n}` }, headers }),
  );
  t.deepEqual(replies.map(({ status }) => status).sort(), [200, ...Array(19).fill(412)]);
  const stale = { status: 412, code: "precondition_failed" };
  isProblem(t, replies.find(({ status }) => status !== 200) as (typeof replies)[0], stale);
  isProblem(t, await api.send("DELETE", path, { headers }), stale);
  const winner = replies.findIndex(({ status }) => status === 200);
  t.is((await api.get(path)).body.title, `change ${winner}`);
});

test("If-None-Match with the current tag returns 304 without a body; with an earlier one, the link", async (t) => {
  const { path, old, current } = await createUpdatedLink();
  for (const method of ["GET", "HEAD"]) {
    const reply = await api.send(method, path, { headers: { "if-none-match": `"x", W/${current}` } });
    t.deepEqual([reply.status, reply.text, tagOf(reply)], [304, "", current]);
  }
  const reply = await api.get(path, { "if-none-match": old });
  t.deepEqual([reply.status, reply.body.title], [200, "changed"]);
});
