import test from "ava";
import { isProblem, read } from "../../harness/clients/api.ts";
import { authorize, shareApi, tokensFor } from "../../harness/clients/authorization.ts";
import { challengeOf } from "../../harness/clients/challenge.ts";
import { sendRaw } from "../../harness/clients/raw.ts";
import { bearer, postForm } from "../../harness/service.ts";

const { service, app, token: good } = await shareApi();
const user = await service.createUser([app.id]);
const tokens = await tokensFor(service, app, user, { parameters: { scope: "openid links:write" } });
const code = (await authorize(service, app, user)).callback.searchParams.get("code") ?? "";
const metadata = `${service.url}/.well-known/oauth-protected-resource/v1`;
const call = async (headers: Record<string, string>, query = "") =>
  read(await fetch(`${service.url}/v1/links${query}`, { headers }));

const noToken: [string, Record<string, string>, string?][] = [
  ["no Authorization header", {}],
  ["an empty header", { authorization: "" }],
  ["the scheme without a token", { authorization: "Bearer" }],
  ["Basic credentials", { authorization: `Basic ${btoa(`${app.clientId}:${app.clientSecret}`)}` }],
  ["a token without a scheme", { authorization: good }],
  ["a token in the query", {}, `?access_token=${good}`],
  ["a token in a cookie", { cookie: `access_token=${good}` }],
];
for (const [name, headers, query] of noToken)
  test(`${name} counts as no token: 401 with a challenge without an error`, async (t) => {
    const reply = await call(headers, query);
    isProblem(t, reply, { status: 401, code: "missing_token" });
    t.deepEqual(challengeOf(reply), { scope: "links:read", resource_metadata: metadata });
  });

const flipCase = (text: string) =>
  text.replace(/[a-z]/i, (c) => (c === c.toLowerCase() ? c.toUpperCase() : c.toLowerCase()));
const invalid: [string, string][] = [
  ["an unknown token", `lga_${"A".repeat(43)}`],
  ["a token without its prefix", good.slice("lga_".length)],
  ["a token padded with =", `${good}=`],
  ["a token with the case of one letter changed", `lga_${flipCase(good.slice(4))}`],
  ["a refresh token", tokens.refresh_token as string],
  ["an id_token", tokens.id_token as string],
  ["an authorization code", code],
  ["a client secret", app.clientSecret],
  ["a token of 6,000 characters", `lga_${"A".repeat(6000)}`],
];
for (const [name, token] of invalid)
  test(`${name} is rejected with invalid_token`, async (t) => {
    const reply = await call(bearer(token));
    isProblem(t, reply, { status: 401, code: "invalid_token" });
    const { error_description, ...challenge } = challengeOf(reply) ?? {};
    t.deepEqual(challenge, { error: "invalid_token", scope: "links:read", resource_metadata: metadata });
    t.truthy(error_description);
    t.false(reply.text.includes(token) && token.length > 4, "the response contains the token");
  });

const malformed: [name: string, token: string, query?: string][] = [
  ["a space inside", `${good.slice(0, 20)} ${good.slice(20)}`],
  ["a comma and a second token", `${good}, ${good}`],
  ["a non-ASCII letter", `${good}\u00e9`],
  ["a token that is also in the query", good, `?access_token=${good}`],
];
for (const [name, value, query] of malformed)
  test(`a header with ${name} is rejected with 400`, async (t) => {
    const reply = await call(bearer(value), query);
    isProblem(t, reply, { status: 400, code: "invalid_request" });
    t.is(challengeOf(reply)?.error, "invalid_request");
    t.is(challengeOf(reply)?.resource_metadata, metadata);
  });

test("two Authorization headers are rejected with 400", async (t) => {
  const values = [`Bearer ${good}`, "Bearer lga_other"];
  for (const [first, second] of [values, values.toReversed()] as [string, string][]) {
    const headers = ["authorization", first, "authorization", second];
    const reply = await sendRaw(service.url, "/v1/links", { headers });
    t.is(reply.status, 400, first);
    t.is(JSON.parse(reply.text).code, "invalid_request");
  }
});

test("a token in a form body is ignored", async (t) => {
  const form = { access_token: good, url: "https://example.com" };
  const reply = await read(await postForm(`${service.url}/v1/links`, form));
  isProblem(t, reply, { status: 401, code: "missing_token" });
});

for (const scheme of ["Bearer", "bearer", "BEARER"])
  test(`the scheme ${scheme} is accepted`, async (t) => {
    // RFC 9110 §11.4 allows several spaces.
    for (const spaces of [" ", "   "])
      t.is((await call({ authorization: scheme + spaces + good })).status, 200);
  });
