import test from "ava";
import { allow, authorizeUrl, createApp, pkce } from "../../harness/clients/oauth.ts";
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
