import test from "ava";
import type { Api, LinkBody, PageBody, SendOptions } from "../../harness/clients/api.ts";
import { apiAt, isMissing } from "../../harness/clients/api.ts";
import { tokensFor } from "../../harness/clients/authorization.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const [a, b] = [await service.createOrganization(), await service.createOrganization()];
const stranger = await service.createUser([b.id]);
const apiA = apiAt(service.url, await service.token(a));
const parameters = { scope: "links:write" };
const appOfB = (await tokensFor(service, b, stranger, { parameters })).access_token;
const appOfA = (await tokensFor(service, a, stranger, { parameters })).access_token;
const callersOfB: [name: string, api: Api][] = [
  ["a script of B", apiAt(service.url, await service.token(b))],
  ["a user of B with an app of B", apiAt(service.url, appOfB)],
  ["a user of B with an app of A", apiAt(service.url, appOfA)],
];

const json = { title: "stolen", url: "https://stolen.example/" };
/** Operations on a link by its id. Each is refused as for an id that doesn't exist. */
const ATTEMPTS: [method: string, path: string, options?: SendOptions][] = [
  ["GET", ""],
  ["GET", "/analytics"],
  ["PATCH", "", { json }],
  ["PATCH", "", { json: {} }],
  ["DELETE", ""],
];
// The current tag of the link, another one, and any.
for (const tag of ['"1"', '"x"', "*"]) {
  const headers = { "if-match": tag };
  ATTEMPTS.push(["PATCH", "", { json, headers }], ["DELETE", "", { headers }]);
  ATTEMPTS.push(["GET", "", { headers: { "if-none-match": tag } }]);
}

for (const [caller, api] of callersOfB) {
  test(`${caller} can't read, change or delete a link of A, and learns nothing about it`, async (t) => {
    const link = await apiA.createLink({ title: "mine" });
    for (const [method, path, options] of ATTEMPTS) {
      const attempt = (id: string) => api.send(method, `/v1/links/${id}${path}`, options);
      const reply = await attempt(link.id);
      isMissing(t, reply);
      const unknown = await attempt("lnk_01ARZ3NDEKTSV4RRFFQ69G5FAV");
      t.is(reply.body.detail, unknown.body.detail, method);
      t.is(reply.headers.get("etag"), null, method);
    }
    t.deepEqual((await apiA.get(`/v1/links/${link.id}`)).body, link);
  });

  test(`${caller} finds no link of A by its values, and can't replace it`, async (t) => {
    const external_id = `ext ${caller}`;
    const link = await apiA.createLink({ title: `secret of A ${caller}`, tags: ["of-a"], external_id });
    const byId = `/v1/links/by-external-id/${encodeURIComponent(external_id)}`;
    isMissing(t, await api.get(byId));
    const queries = ["", "&search=secret", "&tag=of-a", `&search=${link.slug}`, "&archived=false"];
    const exact = [`&slug=${link.slug}`, `&external_id=${external_id}`, `&url=${link.url}`];
    for (const query of [...queries, ...exact]) {
      const { text } = await api.get<PageBody>(`/v1/links?limit=100${query}`);
      t.false(text.includes(link.id), query);
    }
    const own = await api.send<LinkBody>("PUT", byId, { json });
    t.not(own.body.id, link.id);
    await api.send("DELETE", `/v1/links/${own.body.id}`);
    t.deepEqual((await apiA.get(`/v1/links/${link.id}`)).body, link);
  });

  test(`${caller} acts for B`, async (t) => {
    t.is((await api.get<{ id: string }>("/v1/organization")).body.id, b.id);
    const link = await api.createLink();
    isMissing(t, await apiA.get(`/v1/links/${link.id}`));
    t.is((await callersOfB[0]?.[1].get(`/v1/links/${link.id}`))?.status, 200);
  });
}
