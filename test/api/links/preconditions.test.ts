import test from "ava";
import { isProblem, type Reply } from "../../harness/clients/api.ts";
import { shareApi } from "../../harness/clients/authorization.ts";
import { atOnce } from "../../harness/database/storage.ts";

export const databases = "all";

const { api, anonymous } = await shareApi();

const tagOf = ({ headers }: { headers: Headers }): string => headers.get("etag") ?? "";

test("an update changes the strong ETag, which reads return and compare, and a click doesn't", async (t) => {
  const { id, slug } = await api.createLink();
  const path = `/v1/links/${id}`;
  const old = tagOf(await api.get(path));
  const current = tagOf(await api.send("PATCH", path, { json: { title: "changed" } }));
  t.regex(current, /^"[^"]+"$/);
  t.not(current, old);
  await anonymous.get(`/${slug}`);
  const reply = await api.get(path);
  t.is(reply.body.clicks, 1);
  t.deepEqual([tagOf(reply), tagOf(await api.send("HEAD", path))], [current, current]);
  for (const method of ["GET", "HEAD"]) {
    const same = await api.send(method, path, { headers: { "if-none-match": `"x", W/${current}` } });
    t.deepEqual([same.status, same.text, tagOf(same)], [304, "", current]);
  }
  const changed = await api.get(path, { "if-none-match": old });
  t.deepEqual([changed.status, changed.body.title], [200, "changed"]);
});

test("concurrent updates of the same version succeed exactly once", async (t) => {
  const path = `/v1/links/${(await api.createLink()).id}`;
  // Each has a connection then, so none is late.
  const [read] = await atOnce(20, () => api.get(path));
  const headers = { "if-match": tagOf(read as Reply<unknown>) };
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
