import { createSign, generateKeyPairSync, type KeyObject } from "node:crypto";
import type { ServerResponse } from "node:http";
import test from "ava";
import {
  createTrustingOrganization,
  exchange,
  isRefused,
  jobToken,
  UNTRUSTED,
} from "../../harness/clients/workload.ts";
import {
  githubClaims,
  sendJson,
  startTokenIssuer,
  type TokenIssuer,
} from "../../harness/providers/token-issuer.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 1024 });
test.after.always(() => service.close());

type Answer = (response: ServerResponse, issuer: TokenIssuer) => unknown;

/** Starts an issuer, whose response at a path is replaced, and an organization that trusts it. */
async function withIssuer(path?: string, answer?: Answer) {
  const issuer = await startTokenIssuer();
  if (path && answer) issuer.respond(path, (_request, response) => answer(response, issuer));
  return { issuer, organization: await createTrustingOrganization(service, issuer) };
}

const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url");

/** Signs with RS256 and any key, also with one that libraries refuse. */
function signWith(key: KeyObject, issuer: TokenIssuer, header: object = {}): string {
  const content = `${encode({ alg: "RS256", kid: "k", ...header })}.${encode(githubClaims(issuer.issuer, service.url))}`;
  return `${content}.${createSign("sha256").update(content).sign(key, "base64url")}`;
}

const DISCOVERY = "/.well-known/openid-configuration";
const shortKey = { ...publicKey.export({ format: "jwk" }), kid: "k", alg: "RS256" };

const BAD_ANSWERS: [what: string, path: string, answer: Answer][] = [
  ["metadata that is no JSON", DISCOVERY, (response) => response.end("<html>")],
  ["metadata that is a list", DISCOVERY, (response) => sendJson(response, [])],
  [
    "metadata without an issuer",
    DISCOVERY,
    (response, { issuer }) => sendJson(response, { jwks_uri: `${issuer}/jwks` }),
  ],
  ["metadata without a jwks_uri", DISCOVERY, (response, { issuer }) => sendJson(response, { issuer })],
  [
    "a jwks_uri that is no URL",
    DISCOVERY,
    (response, { issuer }) => sendJson(response, { issuer, jwks_uri: "/jwks" }),
  ],
  [
    "a jwks_uri that is a file",
    DISCOVERY,
    (response, { issuer }) => sendJson(response, { issuer, jwks_uri: "file:///etc/passwd" }),
  ],
  [
    "a jwks_uri on a private address",
    DISCOVERY,
    (response, { issuer }) => sendJson(response, { issuer, jwks_uri: "https://10.0.0.1/jwks" }),
  ],
  [
    "metadata that is moved",
    DISCOVERY,
    (response, { issuer }) => response.writeHead(302, { location: `${issuer}/other` }).end(),
  ],
  [
    "metadata that is too large",
    DISCOVERY,
    (response, { issuer }) =>
      sendJson(response, { issuer, jwks_uri: `${issuer}/jwks`, padding: "x".repeat(70_000) }),
  ],
  [
    "metadata that breaks off",
    DISCOVERY,
    (response) => response.writeHead(200, { "content-length": "100" }).write("{", () => response.destroy()),
  ],
  ["keys that are no JSON", "/jwks", (response) => response.end("nothing")],
  ["keys that are no list", "/jwks", (response) => sendJson(response, { keys: "none" })],
  ["no keys", "/jwks", (response) => sendJson(response, { keys: [] })],
  ["keys that are not found", "/jwks", (response) => response.writeHead(404).end()],
  [
    "a key that is malformed",
    "/jwks",
    (response) => sendJson(response, { keys: [{ kty: "RSA", kid: "k", n: "", e: 1 }] }),
  ],
  [
    "a symmetric key",
    "/jwks",
    (response) => sendJson(response, { keys: [{ kty: "oct", kid: "k", k: "c2VjcmV0" }] }),
  ],
  [
    "a key for encryption",
    "/jwks",
    (response) => sendJson(response, { keys: [{ ...shortKey, use: "enc" }] }),
  ],
  ["a key of 1024 bits", "/jwks", (response) => sendJson(response, { keys: [shortKey] })],
  ["two keys with one id", "/jwks", (response) => sendJson(response, { keys: [shortKey, shortKey] })],
];

for (const [what, path, answer] of BAD_ANSWERS) {
  test(`tokens of an issuer with ${what} are refused`, async (t) => {
    const { issuer, organization } = await withIssuer(path, answer);
    t.teardown(() => issuer.stop());
    isRefused(
      t,
      "grant",
      await exchange(service, organization, "grant", signWith(privateKey, issuer)),
      UNTRUSTED,
    );
  });
}

const BAD_HEADERS: [what: string, header: object][] = [
  ["an extension that must be understood", { crit: ["evil"], evil: true }],
  ["an unencoded payload", { crit: ["b64"], b64: false }],
  ["an algorithm that is no text", { alg: 256 }],
  ["an algorithm of another key type", { alg: "ES256" }],
  ["a key of its own", { jwk: shortKey, kid: undefined }],
  ["a link to a key", { jku: "https://evil.example/jwks" }],
];

for (const [what, header] of BAD_HEADERS) {
  test(`a token whose header has ${what} is refused`, async (t) => {
    const { issuer, organization } = await withIssuer();
    t.teardown(() => issuer.stop());
    const token = signWith(privateKey, issuer, header);
    isRefused(t, "grant", await exchange(service, organization, "grant", token), UNTRUSTED);
  });
}

test("a token without a key id is accepted if the issuer has one key", async (t) => {
  const { issuer, organization } = await withIssuer();
  t.teardown(() => issuer.stop());
  const token = await jobToken(service, issuer, {}, { kid: undefined });
  t.is((await exchange(service, organization, "grant", token)).status, 200);
});
