import { createHmac, createPublicKey, createSign, generateKeyPairSync, type KeyObject } from "node:crypto";
import test, { type ExecutionContext } from "ava";
import { base64url, decodeJwt, decodeProtectedHeader } from "jose";
import { type Page, TestBrowser } from "../../../harness/clients/test-browser.ts";
import { now } from "../../../harness/clock.ts";
import {
  isSignInRefused,
  providerSettings,
  signInExternally,
  startWithProvider,
} from "../../../harness/providers/identity-provider.ts";

const { provider, service } = await startWithProvider();

type Json = Record<string, unknown>;
type Parts = { header: Json; payload: Json };

/** Changes an ID token in transit. Undefined: the token is removed. */
type Forgery = (idToken: string) => unknown;

const EVIL = "https://evil.example";
const foreign = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
const foreignJwk = foreign.export({ format: "jwk" });
const { privateKey, publicKey } = provider;
const pem = createPublicKey(privateKey).export({ type: "spki", format: "pem" });

const encode = (part: unknown) => base64url.encode(JSON.stringify(part));
const readToken = (token: string): Parts => ({
  header: { ...decodeProtectedHeader(token) },
  payload: decodeJwt(token),
});

/** Changes a token and signs it again, with the provider's key by default. `undefined` removes a member. */
function resigned(change: (parts: Parts) => Partial<Parts>, key = privateKey): Forgery {
  return (token) => {
    const parts = readToken(token);
    const { header, payload } = { ...parts, ...change(parts) };
    const text = `${encode(header)}.${encode(payload)}`;
    return `${text}.${createSign("sha256").update(text).sign(key, "base64url")}`;
  };
}

const signedBy = (key: KeyObject, changes: Json = {}) =>
  resigned(({ header }) => ({ header: { ...header, ...changes } }), key);
const claims = (change: (payload: Json) => Json) =>
  resigned(({ payload }) => ({ payload: { ...payload, ...change(payload) } }));

function hmacWith(secret: string | Buffer): Forgery {
  return (token) => {
    const { header, payload } = readToken(token);
    const text = `${encode({ ...header, alg: "HS256" })}.${encode(payload)}`;
    return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
  };
}

/** The first have a valid signature, but were not issued for this sign-in. */
const ID_TOKENS: Record<string, Forgery> = {
  "no nonce": claims(() => ({ nonce: undefined })),
  "a nonce of another sign-in": claims(() => ({ nonce: "another" })),
  "another audience": claims(() => ({ aud: "another-client" })),
  "no audience": claims(() => ({ aud: undefined })),
  "several audiences and no authorized party": claims(({ aud }) => ({ aud: [aud, "two"], azp: undefined })),
  "another authorized party": claims(() => ({ azp: "another-client" })),
  "another issuer": claims(() => ({ iss: EVIL })),
  "the issuer with a slash": claims(({ iss }) => ({ iss: `${iss}/` })),
  "no issuer": claims(() => ({ iss: undefined })),
  "an expiry in the past": claims(() => ({ exp: now() - 3600 })),
  "no expiry": claims(() => ({ exp: undefined })),
  "no time of issue": claims(() => ({ iat: undefined })),
  "no subject": claims(() => ({ sub: undefined })),
  "a subject that is no text": claims(() => ({ sub: { admin: true } })),
  "a subject that is too long": claims(() => ({ sub: "s".repeat(256) })),
  "a subject with a NUL": claims(() => ({ sub: "user\u0000" })),
  "a subject outside of ASCII": claims(() => ({ sub: "sömebody" })),
  "a validity that begins later": claims(() => ({ nbf: now() + 3600 })),
  "a time of sign-in that is no number": claims(() => ({ auth_time: "yesterday" })),
  // Another signature, or none.
  "no signature and alg none": (token) => `${encode({ alg: "none" })}.${token.split(".")[1]}.`,
  "alg none and the signature of another alg": (token) =>
    `${encode({ alg: "none" })}.${token.split(".").slice(1).join(".")}`,
  "an HMAC with the public key as PEM": hmacWith(pem),
  "an HMAC with the modulus of the public key": hmacWith(Buffer.from(String(publicKey.n), "base64url")),
  "an HMAC with the client's secret": hmacWith(providerSettings("").IDP_CLIENT_SECRET as string),
  "a signature by another key under the same id": signedBy(foreign),
  "a signature by a key of its own header": signedBy(foreign, { jwk: foreignJwk, kid: undefined }),
  "a signature by a key that its header leads to": signedBy(foreign, { jku: `${EVIL}/jwks`, kid: "evil" }),
  "an unknown key id": signedBy(foreign, { kid: "unknown" }),
  "a header that must be understood and is not": signedBy(privateKey, { crit: ["evil"], evil: true }),
  "a changed payload": (token) => {
    const [header, , signature] = token.split(".");
    return `${header}.${encode({ ...readToken(token).payload, sub: "another-user" })}.${signature}`;
  },
  "its signature cut off": (token) => token.slice(0, token.lastIndexOf(".") + 1),
  "a payload that is no JSON": (token) => `${token.split(".")[0]}.e30x.${token.split(".")[2]}`,
  "nothing at all": () => undefined,
  "no text": () => ({ sub: "user" }),
};

const ANSWERS: Record<string, (body: Record<string, unknown>) => unknown> = {
  "an error": (body) => {
    for (const name of Object.keys(body)) delete body[name];
    body.error = "invalid_grant";
  },
  "no access token": (body) => delete body.access_token,
  "tokens of an unknown type": (body) => Object.assign(body, { token_type: "mac" }),
  "a lifetime that is not a number": (body) => Object.assign(body, { expires_in: {} }),
};

const MARKUP = "<script>alert(1)</script>";
const CALLBACKS: Record<string, (query: URLSearchParams) => unknown> = {
  "the issuer of another provider": (query) => query.set("iss", EVIL),
  "two issuers": (query) => {
    query.append("iss", provider.issuer);
    query.append("iss", EVIL);
  },
  "another state": (query) => query.set("state", "a".repeat(43)),
  "no state": (query) => query.delete("state"),
  "two states": (query) => query.append("state", query.get("state") ?? ""),
  "a state with a NUL": (query) => query.set("state", "\u0000"),
  "no code": (query) => query.delete("code"),
  "two codes": (query) => query.append("code", "another"),
  "an error and a code": (query) => query.set("error", "access_denied"),
  "an error that is described with markup": (query) => {
    query.delete("code");
    query.set("error", "access_denied");
    query.set("error_description", MARKUP);
  },
  "an unsigned ID token": (query) => query.set("id_token", "e30.e30."),
};

const newBrowser = () => new TestBrowser(service.url);

const startIn = async (browser: TestBrowser) =>
  provider.answer(await browser.open(`${service.url}/auth/sso`));

const isRefused = (t: ExecutionContext, browser: TestBrowser, page: Page) =>
  isSignInRefused(t, service, browser, page);

function arriveWith(forge: Forgery, browser = newBrowser()): Promise<Page> {
  provider.tamper((body) => {
    const forged = forge(String(body.id_token));
    if (forged === undefined) delete body.id_token;
    else body.id_token = forged;
  });
  return signInExternally(service, provider, browser);
}

// Serial, because the next response is tampered with.
test.serial("a sign-in without tampering succeeds", async (t) => {
  const page = await arriveWith((token) => token);
  t.is(page.status, 200, page.text);
  t.true(page.url.startsWith(`${service.url}/dashboard`));
  const resigned = await arriveWith(claims(() => ({ extra: true })));
  t.is(resigned.status, 200, "the forgeries below are rejected for what they change");
});

for (const [what, forge] of Object.entries(ID_TOKENS))
  test.serial(`an ID token with ${what} is rejected`, async (t) => {
    const browser = newBrowser();
    await isRefused(t, browser, await arriveWith(forge, browser));
  });

for (const [what, change] of Object.entries(ANSWERS))
  test.serial(`a token response with ${what} is rejected`, async (t) => {
    const browser = newBrowser();
    provider.tamper(change);
    await isRefused(t, browser, await signInExternally(service, provider, browser));
  });

for (const [what, change] of Object.entries(CALLBACKS))
  test.serial(`a callback with ${what} is rejected`, async (t) => {
    const browser = newBrowser();
    const back = new URL(await startIn(browser));
    change(back.searchParams);
    const page = await browser.open(back.href);
    await isRefused(t, browser, page);
    t.regex(page.text, /Example ID did not sign you in|has expired/);
    t.false(page.text.includes(MARKUP));
  });

test.serial("a sign-in is completed once, and only by the browser that started it", async (t) => {
  const [browser, victim] = [newBrowser(), newBrowser()];
  const back = await startIn(browser);
  await victim.open(`${service.url}/auth/sso`);
  await isRefused(t, victim, await victim.open(back));
  t.is((await browser.open(back)).status, 200);
  t.is((await browser.open(back)).status, 400);
});

test.serial("another browser's code is rejected with the own state", async (t) => {
  const [attacker, victim] = [newBrowser(), newBrowser()];
  const stolen = new URL(await startIn(attacker));
  const own = new URL(await startIn(victim));
  own.searchParams.set("code", stolen.searchParams.get("code") as string);
  await isRefused(t, victim, await victim.open(own.href));
});
