import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { challengesIn } from "../../harness/clients/challenge.ts";
import { boundToken, createDpopKey } from "../../harness/clients/dpop.ts";
import { advanceClock } from "../../harness/clock.ts";
import { atOnce } from "../../harness/database/storage.ts";
import { isRejected, startDpopTargets, type TargetAnswer } from "../../harness/dpop-targets.ts";

const { targets, send, proofFor, close, service, app, key, token, bearerToken, api } =
  await startDpopTargets();
test.after.always(close);

const INVALID = "invalid_dpop_proof";
const NONCE = "use_dpop_nonce";
const now = () => Math.floor(Date.now() / 1000);

for (const target of targets) {
  test.serial(`${target.name} accepts a proof once`, async (t) => {
    const proof = await proofFor(target);
    const answer = await send(target, [proof]);
    t.is(answer.status, 200, answer.text);
    isRejected(t, await send(target, [proof]), INVALID);
    t.is((await send(target, [await proofFor(target)])).status, 200, "the next proof");
  });

  test.serial(`${target.name} accepts one of 20 concurrent requests with the same proof`, async (t) => {
    const proof = await proofFor(target);
    const answers = await atOnce(20, () => send(target, [proof]));
    const [accepted, ...others] = answers.toSorted((a, b) => a.status - b.status) as [
      TargetAnswer,
      ...TargetAnswer[],
    ];
    t.is(accepted.status, 200);
    for (const other of others) isRejected(t, other, INVALID);
  });

  test.serial(`${target.name} rejects a bound token without the DPoP scheme`, async (t) => {
    for (const proofs of [[], [await proofFor(target)]]) {
      const answer = await send(target, proofs, `Bearer ${token}`);
      t.is(answer.status, 401);
      t.is(JSON.parse(answer.text).code, "invalid_token");
      const { Bearer, DPoP } = challengesIn(answer.headers["www-authenticate"] ?? "");
      t.is(Bearer?.error, "invalid_token");
      t.deepEqual(DPoP, { algs: "ES256 Ed25519 EdDSA" }); // RFC 9449 §7.2
    }
  });

  test.serial(`${target.name} rejects a bearer token with the DPoP scheme`, async (t) => {
    const proof = await proofFor(target, {}, key, bearerToken);
    isRejected(t, await send(target, [proof], `DPoP ${bearerToken}`), "invalid_token");
    t.is((await send(target, [], `Bearer ${bearerToken}`)).status, 200);
  });

  test.serial(
    `${target.name} rejects bearer tokens of an organization that requires DPoP, not bound ones`,
    async (t) => {
      const strict = await service.createOrganization();
      const unbound = await service.token(strict);
      const bound = await boundToken(service, strict, key);
      t.is((await send(target, [], `Bearer ${unbound}`)).status, 200);
      await service.storage.organizationSettings.change(strict.id, { requiresDpop: true }, OPERATOR);
      const answer = await send(target, [], `Bearer ${unbound}`);
      t.is(answer.status, 401);
      const { Bearer, DPoP } = challengesIn(answer.headers["www-authenticate"] ?? "");
      t.is(Bearer?.error, "invalid_token");
      t.deepEqual(DPoP, { algs: "ES256 Ed25519 EdDSA" });
      const proof = await proofFor(target, {}, key, bound);
      t.is((await send(target, [proof], `DPoP ${bound}`)).status, 200);
    },
  );

  test.serial(`${target.name} ignores a proof that is sent with a bearer token`, async (t) => {
    t.is((await send(target, ["proof"], `Bearer ${bearerToken}`)).status, 200);
  });

  test.serial(
    `${target.name} rejects unknown tokens, and those of another resource, with the DPoP scheme`,
    async (t) => {
      const elsewhere = target.path === "/mcp" ? "/v1" : "/mcp";
      const foreign = await boundToken(service, app, key, { resource: service.url + elsewhere });
      for (const other of [`lga_${"A".repeat(43)}`, foreign]) {
        const proof = await proofFor(target, {}, key, other);
        isRejected(t, await send(target, [proof], `DPoP ${other}`), "invalid_token");
      }
    },
  );

  test.serial(`${target.name} counts the DPoP scheme without a token as no token`, async (t) => {
    for (const authorization of ["DPoP", "DPoP "]) {
      const answer = await send(target, [await proofFor(target)], authorization);
      t.is(answer.status, 401);
      t.is(JSON.parse(answer.text).code, "missing_token");
      const { Bearer, DPoP } = challengesIn(answer.headers["www-authenticate"] ?? "");
      t.is(Bearer?.error, undefined);
      t.deepEqual(DPoP, { algs: "ES256 Ed25519 EdDSA" });
    }
  });

  test.serial(`${target.name} rejects a bound token in the query`, async (t) => {
    const answer = await send(target, [await proofFor(target)], `DPoP ${token}`, `?access_token=${token}`);
    t.is(answer.status, 400);
    t.is(JSON.parse(answer.text).code, "invalid_request");
  });

  test.serial(`${target.name} offers a nonce until a proof contains it`, async (t) => {
    const { nonce } = await send(target, [await proofFor(target)]);
    t.truthy(nonce);
    const answer = await send(target, [await proofFor(target, { claims: { nonce } })]);
    t.is(answer.status, 200);
    t.is(answer.nonce, undefined);
  });

  test.serial(`${target.name} accepts a proof with a nonce from a client with a wrong clock`, async (t) => {
    const refused = await send(target, [await proofFor(target, { claims: { iat: now() - 86_400 } })]);
    isRejected(t, refused, NONCE);
    const proof = await proofFor(target, { claims: { iat: now() - 86_400, nonce: refused.nonce } });
    t.is((await send(target, [proof])).status, 200);
    isRejected(t, await send(target, [proof]), INVALID);
  });
}

for (const alg of ["Ed25519", "EdDSA"]) {
  test.serial(`a token is bound to a key of the algorithm ${alg}`, async (t) => {
    const edKey = await createDpopKey(alg);
    const bound = await boundToken(service, app, edKey);
    const proof = await proofFor(api, {}, edKey, bound);
    t.is((await send(api, [proof], `DPoP ${bound}`)).status, 200);
  });
}

test("the query of a request isn't part of htu", async (t) => {
  t.is((await send(api, [await proofFor(api)], `DPoP ${token}`, "?limit=1")).status, 200);
});

for (const scheme of ["dpop", "DPOP", "DPoP  "]) {
  test.serial(`the scheme ${scheme} is accepted`, async (t) => {
    t.is((await send(api, [await proofFor(api)], `${scheme} ${token}`)).status, 200);
  });
}

test("escapes in the path of a request may be written differently in htu", async (t) => {
  const target = { ...api, path: "/v1/links/%7e%c3%a9" };
  const htu = `${service.url}/v1/links/~%C3%A9`;
  t.is((await send(target, [await proofFor(target, { claims: { htu } })])).status, 404);
});

test("a lacking scope is a challenge of the DPoP scheme", async (t) => {
  const reading = await boundToken(service, app, key, { scope: "links:read" });
  const target = { ...api, method: "POST" };
  const answer = await send(target, [await proofFor(target, {}, key, reading)], `DPoP ${reading}`);
  t.is(answer.status, 403);
  const { DPoP } = challengesIn(answer.headers["www-authenticate"] ?? "");
  t.like(DPoP, { error: "insufficient_scope", scope: "links:read links:write" });
});

test("a bearer token gets no nonce", async (t) => {
  t.is((await send(api, [], `Bearer ${bearerToken}`)).nonce, undefined);
});

test.serial("a nonce expires after a few minutes, and a new one is offered before", async (t) => {
  const first = (await send(api, [await proofFor(api)])).nonce;
  advanceClock(2 * 60_000);
  const renewed = await send(api, [await proofFor(api, { claims: { nonce: first } })]);
  t.is(renewed.status, 200);
  t.truthy(renewed.nonce);
  t.not(renewed.nonce, first);
  advanceClock(3 * 60_000);
  isRejected(t, await send(api, [await proofFor(api, { claims: { nonce: first } })]), NONCE);
});

test.serial("the challenge quotes no part of the path that would end the quotation", async (t) => {
  const target = { ...api, path: '/v1/links/x",resource_metadata="evil' };
  const proof = await proofFor(api, { claims: { htu: service.url } });
  isRejected(t, await send(target, [proof]), INVALID);
});
