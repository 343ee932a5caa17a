import test from "ava";
import { allow, codeFor, runCodeFlow, shareApp } from "../harness/clients/authorization.ts";
import {
  authorizeUrl,
  createApp,
  type Fields,
  REDIRECT_URI,
  VERIFIER,
} from "../harness/clients/authorization-request.ts";
import { isAcceptedByApi, outcomeOf, redeemCode, refresh } from "../harness/clients/oauth.ts";
import { TestBrowser } from "../harness/clients/test-browser.ts";
import { advanceClock } from "../harness/clock.ts";

const CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"; // of VERIFIER

const { service, app, user, other } = await shareApp();

test.serial("a replay after the retry window revokes every token issued from the code", async (t) => {
  const { code, accessToken, refreshToken } = await runCodeFlow(service, app, user);
  const bystander = await runCodeFlow(service, app, user);
  const { body: refreshed } = await refresh(service, app, refreshToken);
  advanceClock(11_000);
  t.is((await redeemCode(service, app, code)).body.error, "invalid_grant");
  t.false(await isAcceptedByApi(service, accessToken));
  t.false(await isAcceptedByApi(service, refreshed.access_token));
  t.is((await refresh(service, app, refreshToken)).body.error, "invalid_grant");
  t.true(await isAcceptedByApi(service, bystander.accessToken));
});

test.serial("a code is valid for a minute, and a duplicate within 10 seconds revokes nothing", async (t) => {
  const code = await codeFor(service, app, user);
  advanceClock(58_000);
  const { body } = await redeemCode(service, app, code);
  advanceClock(9_000);
  t.is((await redeemCode(service, app, code)).body.error, "invalid_grant");
  t.is((await refresh(service, app, String(body.refresh_token))).status, 200);
});

test.serial("another client or a wrong secret can neither redeem a code nor revoke its tokens", async (t) => {
  const fresh = await codeFor(service, app, user);
  t.is((await redeemCode(service, other.app, fresh)).body.error, "invalid_grant");
  t.is((await redeemCode(service, app, fresh)).status, 200);
  const { code, accessToken } = await runCodeFlow(service, app, user);
  advanceClock(11_000);
  t.is((await redeemCode(service, other.app, code)).body.error, "invalid_grant");
  t.is((await redeemCode(service, { ...app, clientSecret: "lgs_wrong" }, code)).status, 401);
  t.true(await isAcceptedByApi(service, accessToken));
});

test("a client with one redirect URI may omit it from the authorization request, the token request, or both", async (t) => {
  const omitted = { redirect_uri: undefined };
  for (const changes of [{}, omitted])
    for (const inTokenRequest of [omitted, {}]) {
      const code = await codeFor(service, app, user, { changes });
      t.is((await redeemCode(service, app, code, inTokenRequest)).status, 200, JSON.stringify(changes));
    }
});

test("a client with several redirect URIs must repeat it in the token request", async (t) => {
  const { app: two, user: owner } = await createApp(service, [REDIRECT_URI, "https://app.example.com/2"]);
  const code = await codeFor(service, two, owner);
  t.is((await redeemCode(service, two, code, { redirect_uri: undefined })).status, 400);
  t.is((await redeemCode(service, two, code)).status, 200);
});

test("a loopback port in the token request must match the authorization request", async (t) => {
  const { app: native, user: owner } = await createApp(service, ["http://127.0.0.1/cb"]);
  const redirect_uri = "http://127.0.0.1:5000/cb";
  const code = await codeFor(service, native, owner, { changes: { redirect_uri } });
  const other = await redeemCode(service, native, code, { redirect_uri: "http://127.0.0.1:5001/cb" });
  t.is(other.body.error, "invalid_grant");
  t.is((await redeemCode(service, native, code, { redirect_uri })).status, 200);
});

const browser = new TestBrowser(service.url);

const OTHER = "x".repeat(43);
const PLAIN = { code_challenge: CHALLENGE, code_challenge_method: "plain" };
/** What a redemption has instead of what is right. */
const WRONG: Record<string, Fields> = {
  "a repeated verifier": { code_verifier: [VERIFIER, OTHER] },
  "a missing verifier": { code_verifier: undefined },
  "a different verifier": { code_verifier: OTHER },
  "a verifier that is too short": { code_verifier: VERIFIER.slice(1) },
  "a verifier that is too long": { code_verifier: VERIFIER.repeat(3) },
  "a verifier with invalid characters": { code_verifier: `${VERIFIER.slice(1)}!` },
  "the challenge itself": { code_verifier: CHALLENGE },
  "the challenge itself, with the method plain": { code_verifier: CHALLENGE, ...PLAIN },
  "a different verifier, with the method plain": { code_verifier: OTHER, ...PLAIN },
  "a redirect URI with a different path": { redirect_uri: "https://app.example.com/other" },
  "a missing code": { code: undefined },
  "an unknown code": { code: OTHER },
};

for (const [what, changes] of Object.entries(WRONG))
  test.serial(`${what} is rejected and leaves the code valid`, async (t) => {
    const code = await codeFor(service, app, user, { browser });
    const refused = () => outcomeOf(redeemCode(service, app, code, changes));
    t.regex(await refused(), /^400 invalid_(grant|request)$/);
    const { status, body } = await redeemCode(service, app, code);
    t.is(status, 200);
    advanceClock(11_000);
    t.regex(await refused(), /^400 invalid_(grant|request)$/);
    t.true(await isAcceptedByApi(service, body.access_token), "it is no replay of the code either");
  });

test("the code challenge can't be read from the authorization response", async (t) => {
  const { href, searchParams } = await allow(service, user, authorizeUrl(service, app));
  t.false(href.includes(CHALLENGE));
  // Nor from a code that is encoded, but not encrypted.
  const decoded = Buffer.from(searchParams.get("code") ?? "", "base64url");
  t.true(decoded.length > 0);
  t.false(decoded.includes(CHALLENGE));
  t.false(decoded.includes(Buffer.from(CHALLENGE, "base64url")));
});
