import test from "ava";
import type { ProblemBody } from "../../../resources/http/problem.ts";
import {
  type Api,
  apiAt,
  isMissing,
  type LinkBody,
  type PageBody,
  type Reply,
} from "../../harness/clients/api.ts";
import { tokensFor } from "../../harness/clients/flow.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const [a, b] = [await service.createOrganization(), await service.createOrganization()];
const user = await service.createUser([a.id, b.id]);
const stranger = await service.createUser([b.id]);
const apiA = apiAt(service.url, await service.token(a));
const appOfB = (await tokensFor(service, b, stranger, { parameters: { scope: "links:write" } })).access_token;
const appOfA = (await tokensFor(service, a, stranger, { parameters: { scope: "links:write" } })).access_token;
const callersOfB: [name: string, api: Api][] = [
  ["a script of B", apiAt(service.url, await service.token(b))],
  ["a user of B with an app of B", apiAt(service.url, appOfB)],
  ["a user of B with an app of A", apiAt(service.url, appOfA)],
];
test.after.always(() => service.close());

const json = { title: "stolen" };
const attempts: [name: string, attempt: (api: Api, link: LinkBody) => Promise<Reply<ProblemBody>>][] = [
  ["read", (api, { id }) => api.get<ProblemBody>(`/v1/links/${id}`)],
  ["update", (api, { id }) => api.send("PATCH", `/v1/links/${id}`, { json })],
  [
    "update with If-Match",
    (api, { id }) => api.send("PATCH", `/v1/links/${id}`, { json, headers: { "if-match": '"1"' } }),
  ],
  ["send an empty update to", (api, { id }) => api.send("PATCH", `/v1/links/${id}`, { json: {} })],
  ["delete", (api, { id }) => api.send("DELETE", `/v1/links/${id}`)],
  [
    "delete with If-Match",
    (api, { id }) => api.send("DELETE", `/v1/links/${id}`, { headers: { "if-match": '"1"' } }),
  ],
];
for (const [caller, api] of callersOfB) {
  for (const [verb, attempt] of attempts) {
    test(`${caller} cannot ${verb} a link of A, and learns nothing about it`, async (t) => {
      const link = await apiA.createLink({ title: "mine" });
      const reply = await attempt(api, link);
      isMissing(t, reply);
      const unknown = await attempt(api, { ...link, id: "lnk_01ARZ3NDEKTSV4RRFFQ69G5FAV" });
      t.is(reply.body.detail, unknown.body.detail);
      t.is(reply.headers.get("etag"), null);
      t.deepEqual((await apiA.get(`/v1/links/${link.id}`)).body, link);
    });
  }

  test(`${caller} finds no link of A in a list or a search`, async (t) => {
    const link = await apiA.createLink({
      title: `secret of A ${caller}`,
      tags: ["of-a"],
      external_id: `ext ${caller}`,
    });
    for (const query of ["", "&search=secret", "&tag=of-a", `&search=${link.slug}`, "&archived=false"]) {
      const { body } = await api.get<PageBody>(`/v1/links?limit=100${query}`);
      t.false(
        body.data.some(({ id }) => id === link.id),
        query,
      );
    }
  });

  test(`${caller} acts for B`, async (t) => {
    t.is((await api.get<{ id: string }>("/v1/organization")).body.id, b.id);
    const link = await api.createLink();
    isMissing(t, await apiA.get(`/v1/links/${link.id}`));
    t.is((await callersOfB[0]?.[1].get(`/v1/links/${link.id}`))?.status, 200);
  });
}

for (const [name, chosen, other] of [
  ["A", a, b],
  ["B", b, a],
] as const) {
  test(`an app acts for ${name} if a user who is a member of A and B chose ${name}`, async (t) => {
    const parameters = { scope: "links:write" };
    const tokens = await tokensFor(service, a, user, { parameters, organizationId: chosen.id });
    const api = apiAt(service.url, tokens.access_token);
    t.is((await api.get<{ id: string }>("/v1/organization")).body.id, chosen.id);
    const { id } = await api.createLink();
    t.is((await apiAt(service.url, await service.token(chosen)).get(`/v1/links/${id}`)).status, 200);
    isMissing(t, await apiAt(service.url, await service.token(other)).get(`/v1/links/${id}`));
  });
}
