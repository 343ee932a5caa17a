import test, { type ExecutionContext } from "ava";
import { challengesIn } from "../../harness/clients/challenge.ts";
import { athOf, boundToken, createDpopKey, signProof } from "../../harness/clients/dpop.ts";
import { MCP_HEADERS, modernRequest } from "../../harness/clients/mcp.ts";
import { RESOURCE_SERVER } from "../../harness/clients/oauth.ts";
import { sendRaw } from "../../harness/clients/raw.ts";
import { advanceClock, now } from "../../harness/clock.ts";
import { freePort } from "../../harness/program.ts";
import { OPERATOR, startTestService } from "../../harness/service.ts";

/** A request that a resource accepts with a valid proof. */
type Target = { name: string; server: string; method: string; path: string; headers: object; body?: string };

const LIST_TOOLS = modernRequest("tools/list");
const REST = { method: "GET", path: "/v1/links", headers: {} };
const MCP = {
  method: "POST",
  path: "/mcp",
  headers: { ...MCP_HEADERS, ...LIST_TOOLS.headers },
  body: JSON.stringify(LIST_TOOLS.message),
};

const service = await startTestService({ RESOURCE_SERVER_SECRET: RESOURCE_SERVER.clientSecret });
const port = await freePort();
// A resource server with a database of its own that asks the service about tokens. It serves the URLs of the service, as
// behind a proxy that sends it the requests for resources.
await startTestService({
  PORT: String(port),
  BASE_URL: service.url,
  INTROSPECTION_URL: `${service.url}/oauth/introspect`,
  INTROSPECTION_CLIENT_SECRET: RESOURCE_SERVER.clientSecret,
});
const app = await service.createOrganization();
const key = await createDpopKey();
const token = await boundToken(service, app, key);
const bearerToken = await service.token(app);
const apart = `http://127.0.0.1:${port}`;
const { host } = new URL(service.url);

const api: Target = { name: "the API", server: service.url, ...REST };
const targets: Target[] = [
  api,
  { name: "MCP", server: service.url, ...MCP },
  { name: "the API of a resource server", server: apart, ...REST },
  { name: "MCP of a resource server", server: apart, ...MCP },
];

async function send(target: Target, proofs: string[], authorization = `DPoP ${token}`, query = "") {
  const { server, method, path, headers, body } = target;
  const answer = await sendRaw(server, path + query, {
    method,
    headers: [
      ...Object.entries({ ...headers, host, authorization }).flat(),
      ...proofs.flatMap((proof) => ["dpop", proof]),
    ],
    ...(body && { body }),
  });
  return { ...answer, nonce: answer.headers["dpop-nonce"] as string | undefined };
}

function proofFor(
  { method, path }: Target,
  claims: Record<string, unknown> = {},
  ofToken = token,
  signer = key,
) {
  return signProof(signer, {
    claims: { htm: method, htu: service.url + path, ath: athOf(ofToken), ...claims },
  });
}

type TargetAnswer = Awaited<ReturnType<typeof send>>;

/** Asserts that a request was rejected: the status, the code of the problem, and the challenge of the DPoP scheme. */
function isRejected(t: ExecutionContext, { status, headers, text }: TargetAnswer, code: string): void {
  t.is(status, 401, text);
  const problem = JSON.parse(text);
  t.is(problem.code, code, text);
  const { DPoP, Bearer } = challengesIn(headers["www-authenticate"] ?? "");
  t.is(DPoP?.error, code);
  t.is(DPoP?.error_description, problem.detail);
  t.is(DPoP?.algs, "ES256 Ed25519 EdDSA");
  t.truthy(DPoP?.scope);
  t.regex(DPoP?.resource_metadata ?? "", /\/\.well-known\/oauth-protected-resource\/(v1|mcp)$/);
  t.is(Bearer, undefined);
}

/** Asserts that a request was rejected with a challenge of the Bearer scheme, beside which DPoP is offered. */
function needsBearer(t: ExecutionContext, answer: TargetAnswer, code: string, error: string | undefined) {
  t.is(answer.status, 401);
  t.is(JSON.parse(answer.text).code, code);
  const { Bearer, DPoP } = challengesIn(answer.headers["www-authenticate"] ?? "");
  t.is(Bearer?.error, error);
  t.deepEqual(DPoP, { algs: "ES256 Ed25519 EdDSA" }); // RFC 9449 §7.2
}

const INVALID = "invalid_dpop_proof";
const NONCE = "use_dpop_nonce";

for (const target of targets) {
  test.serial(`${target.name} accepts a proof once`, async (t) => {
    const proof = await proofFor(target);
    const answer = await send(target, [proof]);
    t.is(answer.status, 200, answer.text);
    isRejected(t, await send(target, [proof]), INVALID);
    t.is((await send(target, [await proofFor(target)])).status, 200, "the next proof");
  });

  test.serial(
    `${target.name} rejects a bound token without the DPoP scheme, and that scheme without a token`,
    async (t) => {
      for (const proofs of [[], [await proofFor(target)]])
        needsBearer(t, await send(target, proofs, `Bearer ${token}`), "invalid_token", "invalid_token");
      for (const authorization of ["DPoP", "DPoP "])
        needsBearer(
          t,
          await send(target, [await proofFor(target)], authorization),
          "missing_token",
          undefined,
        );
    },
  );

  test.serial(`${target.name} rejects a bearer token with the DPoP scheme`, async (t) => {
    const proof = await proofFor(target, {}, bearerToken);
    isRejected(t, await send(target, [proof], `DPoP ${bearerToken}`), "invalid_token");
    t.is((await send(target, ["proof"], `Bearer ${bearerToken}`)).status, 200, "which ignores proofs");
  });

  test.serial(`${target.name} rejects bearer tokens where DPoP is required, not bound ones`, async (t) => {
    const strict = await service.createOrganization();
    const unbound = await service.token(strict);
    const bound = await boundToken(service, strict, key);
    t.is((await send(target, [], `Bearer ${unbound}`)).status, 200);
    await service.storage.organizationSettings.change(strict.id, { requiresDpop: true }, OPERATOR);
    needsBearer(t, await send(target, [], `Bearer ${unbound}`), "invalid_token", "invalid_token");
    const proof = await proofFor(target, {}, bound);
    t.is((await send(target, [proof], `DPoP ${bound}`)).status, 200);
  });

  test.serial(
    `${target.name} rejects unknown tokens, and those of another resource, with the DPoP scheme`,
    async (t) => {
      const elsewhere = target.path === "/mcp" ? "/v1" : "/mcp";
      const foreign = await boundToken(service, app, key, { resource: service.url + elsewhere });
      for (const other of [`lga_${"A".repeat(43)}`, foreign]) {
        const proof = await proofFor(target, {}, other);
        isRejected(t, await send(target, [proof], `DPoP ${other}`), "invalid_token");
      }
    },
  );

  test.serial(`${target.name} offers a nonce to proofs only, until one contains it`, async (t) => {
    const { nonce } = await send(target, [await proofFor(target)]);
    t.truthy(nonce);
    const answer = await send(target, [await proofFor(target, { nonce })]);
    t.is(answer.status, 200);
    t.is(answer.nonce, undefined);
    t.is((await send(target, [], `Bearer ${bearerToken}`)).nonce, undefined);
  });

  test.serial(`${target.name} accepts a proof with a nonce from a client with a wrong clock`, async (t) => {
    const refused = await send(target, [await proofFor(target, { iat: now() - 86_400 })]);
    isRejected(t, refused, NONCE);
    const proof = await proofFor(target, { iat: now() - 86_400, nonce: refused.nonce });
    t.is((await send(target, [proof])).status, 200);
    isRejected(t, await send(target, [proof]), INVALID);
  });
}

for (const alg of ["Ed25519", "EdDSA"])
  test.serial(`a token is bound to a key of the algorithm ${alg}`, async (t) => {
    const edKey = await createDpopKey(alg);
    const bound = await boundToken(service, app, edKey);
    t.is((await send(api, [await proofFor(api, {}, bound, edKey)], `DPoP ${bound}`)).status, 200);
  });

test("htu has no query and may have other escapes, and the case of the scheme doesn't matter", async (t) => {
  t.is((await send(api, [await proofFor(api)], `dPOP  ${token}`, "?limit=1")).status, 200);
  const target = { ...api, path: "/v1/links/%7e%c3%a9" };
  const htu = `${service.url}/v1/links/~%C3%A9`;
  t.is((await send(target, [await proofFor(target, { htu })])).status, 404);
});

test("a lacking scope is a challenge of the DPoP scheme", async (t) => {
  const reading = await boundToken(service, app, key, { scope: "links:read" });
  const target = { ...api, method: "POST" };
  const answer = await send(target, [await proofFor(target, {}, reading)], `DPoP ${reading}`);
  t.is(answer.status, 403);
  const { DPoP } = challengesIn(answer.headers["www-authenticate"] ?? "");
  t.like(DPoP, { error: "insufficient_scope", scope: "links:read links:write" });
});

test.serial("a nonce expires after a few minutes, and a new one is offered before", async (t) => {
  const first = (await send(api, [await proofFor(api)])).nonce;
  advanceClock(2 * 60_000);
  const renewed = await send(api, [await proofFor(api, { nonce: first })]);
  t.is(renewed.status, 200);
  t.truthy(renewed.nonce);
  t.not(renewed.nonce, first);
  advanceClock(3 * 60_000);
  isRejected(t, await send(api, [await proofFor(api, { nonce: first })]), NONCE);
});

test.serial("the challenge quotes no part of the path that would end the quotation", async (t) => {
  const target = { ...api, path: '/v1/links/x",resource_metadata="evil' };
  const proof = await proofFor(api, { htu: service.url });
  isRejected(t, await send(target, [proof]), INVALID);
});
