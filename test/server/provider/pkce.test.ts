import test from "ava";
import { browserOf } from "../../harness/clients/dashboard.ts";
import {
  allow,
  authorizeUrl,
  codeFor,
  createApp,
  type Fields,
  isAcceptedByApi,
  pkce,
  redeemCode,
  VERIFIER,
} from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const { app, user } = await createApp(service);
const { challenge } = await pkce();
const { browser: signedIn } = await browserOf(service, user);
test.after.always(() => service.close());

const INVALID_REQUESTS: [what: string, changes: Fields][] = [
  ["no challenge", { code_challenge: undefined, code_challenge_method: undefined }],
  ["an empty challenge", { code_challenge: "" }],
  ["a method without a challenge", { code_challenge: undefined }],
  ["the method plain", { code_challenge_method: "plain" }],
  ["a challenge without a method", { code_challenge_method: undefined }],
  ["an unknown method", { code_challenge_method: "S512" }],
  ["a lower-case method", { code_challenge_method: "s256" }],
  ["a challenge that is too short", { code_challenge: challenge.slice(1) }],
  ["a challenge that is too long", { code_challenge: "x".repeat(129) }],
  ["a challenge with invalid characters", { code_challenge: `${challenge.slice(1)}=` }],
];

for (const [what, changes] of INVALID_REQUESTS) {
  test(`a request with ${what} is rejected with invalid_request`, async (t) => {
    const page = await signedIn.open(authorizeUrl(service, app, changes));
    const query = new URL(page.url).searchParams;
    t.is(query.get("error"), "invalid_request");
    t.is(query.get("iss"), service.url);
  });
}

test("a native app must also send a code challenge", async (t) => {
  const { app: native } = await createApp(service, ["http://127.0.0.1/cb"]);
  const changes = { redirect_uri: "http://127.0.0.1:5000/cb", code_challenge: undefined };
  const page = await new TestBrowser(service.url).open(authorizeUrl(service, native, changes));
  t.is(new URL(page.url).searchParams.get("error"), "invalid_request");
});

const INVALID_VERIFIERS: Record<string, string | undefined> = {
  "a missing verifier": undefined,
  "an empty verifier": "",
  "a different verifier": "x".repeat(43),
  "a verifier that is too short": VERIFIER.slice(1),
  "a verifier that is too long": VERIFIER.repeat(3),
  "a verifier with invalid characters": `${VERIFIER.slice(1)}!`,
  "a verifier with a NUL": `${VERIFIER}\u0000`,
  "a verifier with a trailing space": `${VERIFIER} `,
  "an upper-case verifier": VERIFIER.toUpperCase(),
  "the challenge itself": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
};

for (const [what, verifier] of Object.entries(INVALID_VERIFIERS)) {
  test(`${what} is rejected and leaves the code valid`, async (t) => {
    const code = await codeFor(service, app, user);
    const wrong = await redeemCode(service, app, code, { code_verifier: verifier });
    t.is(wrong.status, 400);
    t.regex(String(wrong.body.error), /^invalid_(grant|request)$/);
    t.false("access_token" in wrong.body);
    t.is((await redeemCode(service, app, code)).status, 200);
  });
}

test("a repeated verifier is rejected", async (t) => {
  const code = await codeFor(service, app, user);
  const { status, body } = await redeemCode(service, app, code, {
    code_verifier: [VERIFIER, "x".repeat(43)],
  });
  t.is(status, 400);
  t.is(body.error, "invalid_request");
});

test("a wrong verifier after the redemption revokes nothing", async (t) => {
  const code = await codeFor(service, app, user);
  const { body } = await redeemCode(service, app, code);
  t.is((await redeemCode(service, app, code, { code_verifier: "x".repeat(43) })).status, 400);
  t.true(await isAcceptedByApi(service, body.access_token));
});

test("the verifier of one authorization can't redeem the code of another", async (t) => {
  const other = await pkce();
  const url = authorizeUrl(service, app, { code_challenge: other.challenge });
  const code = (await allow(service, user, url)).searchParams.get("code") ?? "";
  t.is((await redeemCode(service, app, code)).body.error, "invalid_grant");
  t.is((await redeemCode(service, app, code, { code_verifier: other.verifier })).status, 200);
});
