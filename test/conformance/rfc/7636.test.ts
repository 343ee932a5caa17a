import test from "ava";
import { allow, authorizeUrl, codeFor, createApp, pkce, redeemCode } from "../../harness/clients/oauth.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const { app, user } = await createApp(service);
test.after.always(() => service.close());

test("the code challenge can't be read from the authorization response", async (t) => {
  const { challenge } = await pkce();
  const callback = await allow(service, user, authorizeUrl(service, app, { code_challenge: challenge }));
  const code = callback.searchParams.get("code") ?? "";
  t.true(code.length > 0);
  t.false(callback.href.includes(challenge));
  // Nor from a code that is encoded, but not encrypted.
  const decoded = Buffer.from(code, "base64url");
  t.false(decoded.includes(challenge));
  t.false(decoded.includes(Buffer.from(challenge, "base64url")));
});

test("a token request can't choose another method", async (t) => {
  const { verifier, challenge } = await pkce();
  const code = await codeFor(service, app, user, { changes: { code_challenge: challenge } });
  const plain = { code_challenge_method: "plain", code_challenge: challenge };
  for (const code_verifier of [challenge, "x".repeat(43)]) {
    const { status, body } = await redeemCode(service, app, code, { ...plain, code_verifier });
    t.is(status, 400);
    t.is(body.error, "invalid_grant");
  }
  t.is((await redeemCode(service, app, code, { ...plain, code_verifier: verifier })).status, 200);
});
