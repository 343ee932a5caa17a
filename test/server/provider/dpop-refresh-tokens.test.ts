import { randomUUID } from "node:crypto";
import { DpopSession } from "@modelcontextprotocol/client";
import test from "ava";
import { SignJWT } from "jose";
import { OPERATOR } from "../../../resources/events/types.ts";
import { parsePublicKey } from "../../../server/credentials/public-keys.ts";
import { createDpopKey, signProof } from "../../harness/clients/dpop.ts";
import { REDIRECT_URI } from "../../harness/clients/flow.ts";
import {
  allow,
  authorizeUrl,
  codeFor,
  createApp,
  type Fields,
  formOf,
  read,
  VERIFIER,
} from "../../harness/clients/oauth.ts";
import { register } from "../../harness/clients/registration.ts";
import { createSelfRegisteringHost } from "../../harness/clients/self-registering.ts";
import { postForm, startTestService } from "../../harness/service.ts";

const service = await startTestService({ DYNAMIC_REGISTRATION: "stateless" });
const { app, own, user } = await createApp(service);
await service.storage.organizationSettings.change(own.id, { allowedClients: "any" }, OPERATOR);
const [key, otherKey, clientKey] = await Promise.all([createDpopKey(), createDpopKey(), createDpopKey()]);
await service.storage.clients.addKey(app.id, await parsePublicKey(JSON.stringify(clientKey.jwk)), OPERATOR);
test.after.always(() => service.close());

const CALLBACK = "http://127.0.0.1/callback";
const TOKEN_URL = `${service.url}/oauth/token`;

/** Sends a token request, with a proof if there is a key. */
async function requestTokens(fields: Fields, signer?: typeof key) {
  const dpop = signer && (await signProof(signer, { claims: { htm: "POST", htu: TOKEN_URL } }));
  return read(postForm(TOKEN_URL, formOf(fields), dpop ? { dpop } : {}));
}

/** Runs the code flow of a client that has registered itself. */
async function connectPublic(signer?: typeof key) {
  const { clientId: client_id } = await register(service, { redirect_uris: [CALLBACK] });
  const url = authorizeUrl(service, { ...app, clientId: client_id }, { redirect_uri: CALLBACK });
  const code = (await allow(service, user, url)).searchParams.get("code") ?? "";
  const fields = { client_id, grant_type: "authorization_code", code, redirect_uri: CALLBACK };
  const { status, body, text } = await requestTokens({ ...fields, code_verifier: VERIFIER }, signer);
  if (status !== 200) throw new Error(text);
  return { client_id, grant_type: "refresh_token", refresh_token: String(body.refresh_token) };
}

test("the refresh token of a public client is bound to the key of its proof", async (t) => {
  const request = await connectPublic(key);
  for (const signer of [undefined, otherKey]) {
    const { status, body } = await requestTokens(request, signer);
    t.is(status, 400);
    t.is(body.error, "invalid_grant");
  }
  const rotated = await requestTokens(request, key);
  t.is(rotated.status, 200, rotated.text);
  const next = { ...request, refresh_token: String(rotated.body.refresh_token) };
  t.not(next.refresh_token, request.refresh_token);
  t.is((await requestTokens(next, otherKey)).body.error, "invalid_grant");
  t.is((await requestTokens(next, key)).status, 200);
});

test.serial("an unbound refresh token of a public client ends where DPoP becomes required", async (t) => {
  const [unbound, bound] = [await connectPublic(), await connectPublic(key)];
  await service.storage.organizationSettings.change(own.id, { requiresDpop: true }, OPERATOR);
  t.is((await requestTokens(unbound)).body.error, "invalid_dpop_proof");
  t.is((await requestTokens(unbound, key)).body.error, "invalid_grant");
  t.is((await requestTokens(bound, key)).status, 200);
  await service.storage.organizationSettings.change(own.id, { requiresDpop: false }, OPERATOR);
  t.is((await requestTokens(unbound)).status, 200, "nothing was used up");
});

test("a client that authenticates with private_key_jwt may change the key of its proofs", async (t) => {
  const authentication = async () => ({
    client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    client_assertion: await new SignJWT({ jti: randomUUID() })
      .setProtectedHeader({ alg: clientKey.alg })
      .setIssuer(app.clientId)
      .setSubject(app.clientId)
      .setAudience(service.url)
      .setIssuedAt()
      .setExpirationTime("1m")
      .sign(clientKey.privateKey),
  });
  const code = await codeFor(service, app, user);
  const fields = {
    grant_type: "authorization_code",
    code,
    redirect_uri: REDIRECT_URI,
    code_verifier: VERIFIER,
  };
  const first = await requestTokens({ ...(await authentication()), ...fields }, key);
  t.is(first.status, 200, first.text);
  const refresh_token = String(first.body.refresh_token);
  const request = { grant_type: "refresh_token", refresh_token };
  const second = await requestTokens({ ...(await authentication()), ...request }, otherKey);
  t.is(second.status, 200, second.text);
  t.is(second.body.token_type, "DPoP");
});

test("the MCP SDK's client registers itself, and uses DPoP with the code flow", async (t) => {
  const session = await DpopSession.create();
  const host = createSelfRegisteringHost(service, user, { dpop: () => session });
  const client = await host.connect();
  t.is(host.state.tokens?.token_type, "DPoP");
  const { structuredContent } = await client.callTool({ name: "whoami", arguments: {} });
  t.like(structuredContent, { user_id: user.id });
  await client.close();
});
