import test, { type ExecutionContext } from "ava";
import { createRemoteJWKSet, jwtVerify } from "jose";
import { sha256 } from "../../../adapters/crypto/hash.ts";
import {
  basic,
  createApp,
  isAcceptedByApi,
  postAsClient,
  read,
  refresh,
  runCodeFlow,
} from "../../harness/clients/oauth.ts";
import { postForm, startTestService } from "../../harness/service.ts";

export const databases = "all";

const service = await startTestService();
const { app, user } = await createApp(service);
const other = await createApp(service);
const keys = createRemoteJWKSet(new URL(`${service.url}/oauth/jwks`));
test.after.always(() => service.close());

async function revoke(token: string, client = app) {
  const headers = { ...basic(client), accept: "application/jwt" };
  return read(postForm(`${service.url}/oauth/revoke`, { token }, headers));
}

/** Revokes a token, and returns the verified statement. */
async function statementOf(t: ExecutionContext, token: string) {
  const from = Date.now();
  const { status, headers, text } = await revoke(token);
  t.is(status, 200);
  t.is(headers.get("content-type"), "application/jwt");
  t.is(headers.get("cache-control"), "no-store");
  t.regex(headers.get("vary") ?? "", /\bAccept\b/);
  const { payload, protectedHeader } = await jwtVerify(text, keys, {
    issuer: service.url,
    audience: app.clientId,
    typ: "revocation-statement+jwt",
  });
  t.is(protectedHeader.alg, "ES256");
  t.is(payload.token_sha256, sha256(token));
  const at = Date.parse(String(payload.revoked_at));
  t.true(from <= at && at <= Date.now());
  t.truthy(payload.jti);
  return payload;
}

test("a revocation is proven by a signed statement: of a token, and of a grant with all its tokens", async (t) => {
  const own = await service.token(app);
  t.is((await statementOf(t, own)).revoked, "token");
  t.false(await isAcceptedByApi(service, own));
  for (const which of ["accessToken", "refreshToken"] as const) {
    const tokens = await runCodeFlow(service, app, user);
    t.is((await statementOf(t, tokens[which])).revoked, "grant");
    t.false(await isAcceptedByApi(service, tokens.accessToken));
    t.is((await refresh(service, app, tokens.refreshToken)).body.error, "invalid_grant");
  }
});

test("unknown tokens, those of another client and those revoked before are stated alike", async (t) => {
  const foreign = await service.token(other.app);
  const revoked = await service.token(app);
  await revoke(revoked);
  for (const token of ["unknown", "a.b.c", foreign, revoked])
    t.is((await statementOf(t, token)).revoked, null, token);
  t.true(await isAcceptedByApi(service, foreign));
});

test("other media types get JSON, and errors stay JSON", async (t) => {
  for (const accept of ["*/*", "application/json", "text/html"]) {
    const headers = { ...basic(app), accept };
    const { text } = await read(postForm(`${service.url}/oauth/revoke`, { token: "unknown" }, headers));
    t.is(text, "{}");
  }
  const wrong = await revoke("unknown", { ...app, clientSecret: "wrong" });
  t.is(wrong.status, 401);
  t.is(wrong.body.error, "invalid_client");
  t.is((await postAsClient(service, "revoke", app, { token: "unknown" })).text, "{}");
});
