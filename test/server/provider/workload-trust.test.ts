import { createHmac } from "node:crypto";
import test from "ava";
import { exportJWK, exportSPKI } from "jose";
import {
  createTrustingOrganization,
  exchange,
  FORMS,
  type Form,
  isRefused,
  jobToken,
  UNTRUSTED,
} from "../../harness/clients/workload.ts";
import { githubClaims, signWithForeignKey, startTokenIssuer } from "../../harness/providers/token-issuer.ts";
import { startTestService } from "../../harness/service.ts";

const [service, issuer, unknownIssuer] = await Promise.all([
  startTestService(),
  startTokenIssuer(),
  startTokenIssuer(),
]);
const organization = await createTrustingOrganization(service, issuer);
test.after.always(() => Promise.all([service.close(), issuer.stop(), unknownIssuer.stop()]));

const BOTH = Object.keys(FORMS) as Form[];

const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url");
/** Signs a token with HMAC, as if the public key were a secret. */
async function signWithPublicKey(
  secret: (key: typeof issuer.key.publicKey) => Promise<string>,
): Promise<string> {
  const content = `${encode({ alg: "HS256", typ: "JWT", kid: issuer.key.kid })}.${encode(githubClaims(issuer.issuer, service.url))}`;
  const signature = createHmac("sha256", await secret(issuer.key.publicKey))
    .update(content)
    .digest("base64url");
  return `${content}.${signature}`;
}

const UNSIGNED: [what: string, token: () => Promise<string> | string, clientId?: string][] = [
  ["for an unknown client", () => jobToken(service, issuer), "lgc_AAAAAAAAAAAAAAAAAAAAAA"],
  ["for the dashboard's client", () => jobToken(service, issuer), "dashboard"],
  ["of an issuer without a rule", () => jobToken(service, unknownIssuer)],
  [
    "that names its issuer with a trailing slash",
    () => jobToken(service, issuer, { iss: `${issuer.issuer}/` }),
  ],
  [
    "that names its issuer in another case",
    () => jobToken(service, issuer, { iss: issuer.issuer.toUpperCase() }),
  ],
  ["without an issuer", () => jobToken(service, issuer, { iss: undefined })],
  ["whose issuer is a list", () => jobToken(service, issuer, { iss: [issuer.issuer] as unknown as string })],
  ["signed by another issuer", () => unknownIssuer.sign(githubClaims(issuer.issuer, service.url))],
  [
    "signed by another key under the same id",
    () => signWithForeignKey(githubClaims(issuer.issuer, service.url), issuer.key.kid),
  ],
  ["with the signature cut off", async () => (await jobToken(service, issuer)).replace(/[^.]*$/, "")],
  [
    "with changed claims",
    async () => {
      const [header, , signature] = (await jobToken(service, issuer)).split(".");
      return `${header}.${encode({ ...githubClaims(issuer.issuer, service.url), scope: "all" })}.${signature}`;
    },
  ],
  ["with alg none", () => `${encode({ alg: "none" })}.${encode(githubClaims(issuer.issuer, service.url))}.`],
  ["with an HMAC by the public key in PEM", () => signWithPublicKey((key) => exportSPKI(key))],
  [
    "with an HMAC by the public key as JWK",
    () => signWithPublicKey(async (key) => JSON.stringify(await exportJWK(key))),
  ],
];

for (const [what, sign, clientId = organization.clientId] of UNSIGNED) {
  for (const form of BOTH) {
    test(`a token ${what} is refused as ${form}, without saying why`, async (t) => {
      isRefused(t, form, await exchange(service, { clientId }, form, await sign()), UNTRUSTED);
    });
  }
}

test("the keys of an issuer that no rule of the client names are never fetched", async (t) => {
  const stranger = await startTokenIssuer();
  t.teardown(() => stranger.stop());
  const other = await createTrustingOrganization(service, unknownIssuer);
  await createTrustingOrganization(service, stranger);
  isRefused(
    t,
    "grant",
    await exchange(service, other, "grant", await jobToken(service, stranger)),
    UNTRUSTED,
  );
  t.deepEqual(stranger.requests, []);
});

test("in production, the keys of an issuer on loopback are never fetched", async (t) => {
  const production = await startTestService({ NODE_ENV: "production", RATE_LIMIT: "on" });
  const local = await startTokenIssuer();
  t.teardown(() => Promise.all([production.close(), local.stop()]));
  const own = await createTrustingOrganization(production, local);
  isRefused(
    t,
    "grant",
    await exchange(production, own, "grant", await jobToken(production, local)),
    UNTRUSTED,
  );
  t.deepEqual(local.requests, []);
});

test("a token is refused for the client of another organization", async (t) => {
  const other = await service.createOrganization();
  isRefused(t, "grant", await exchange(service, other, "grant", await jobToken(service, issuer)), UNTRUSTED);
});

const MALFORMED = ["not.a.token", "a", "..", `${encode({ alg: "RS256" })}.${encode([])}.x`, "é".repeat(100)];

for (const assertion of MALFORMED) {
  test(`the assertion ${JSON.stringify(assertion.slice(0, 30))} is an invalid grant`, async (t) => {
    isRefused(t, "grant", await exchange(service, organization, "grant", assertion), UNTRUSTED);
  });
}

test("an issuer whose metadata names another one is refused", async (t) => {
  const liar = await startTokenIssuer();
  t.teardown(() => liar.stop());
  liar.respond("/.well-known/openid-configuration", (_request, response) =>
    response.end(JSON.stringify({ issuer: issuer.issuer, jwks_uri: `${issuer.issuer}/jwks` })),
  );
  const own = await createTrustingOrganization(service, liar);
  isRefused(t, "grant", await exchange(service, own, "grant", await jobToken(service, liar)), UNTRUSTED);
});

test("an issuer that doesn't respond is refused, and accepted when it does again", async (t) => {
  const away = await startTokenIssuer();
  t.teardown(() => away.stop());
  const own = await createTrustingOrganization(service, away);
  const { restore } = away.breakDown();
  isRefused(t, "grant", await exchange(service, own, "grant", await jobToken(service, away)), UNTRUSTED);
  restore();
  t.is((await exchange(service, own, "grant", await jobToken(service, away))).status, 200);
});

test("discovery and keys are fetched once for many tokens", async (t) => {
  const fresh = await startTokenIssuer();
  t.teardown(() => fresh.stop());
  const own = await createTrustingOrganization(service, fresh);
  for (let count = 0; count < 3; count++)
    await exchange(service, own, "grant", await jobToken(service, fresh));
  t.deepEqual(fresh.requests, ["/.well-known/openid-configuration", "/jwks"]);
});
