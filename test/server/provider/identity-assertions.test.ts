import { randomUUID } from "node:crypto";
import {
  Client,
  CrossAppAccessProvider,
  discoverAndRequestJwtAuthGrant,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import test from "ava";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import * as oidc from "openid-client";
import type { Role } from "../../../resources/access/scopes.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { parsePublicKey } from "../../../server/credentials/public-keys.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { firstPartyToken } from "../../harness/clients/dashboard.ts";
import {
  type Answer,
  basic,
  type Fields,
  formOf,
  isAcceptedByApi,
  read,
} from "../../harness/clients/oauth.ts";
import { providerSettings } from "../../harness/providers/identity-provider.ts";
import { sendJson, startTokenIssuer } from "../../harness/providers/token-issuer.ts";
import {
  bearer,
  postForm,
  startTestService,
  type TestOrganization,
  type TestService,
} from "../../harness/service.ts";

const GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const PROFILE = "urn:ietf:params:oauth:grant-profile:id-jag";
const ID_JAG = { typ: "oauth-id-jag+jwt" };

const idp = await startTokenIssuer();
const service = await startTestService(providerSettings(idp.issuer));
const { storage } = service;
const mcp = `${service.url}/mcp`;
test.after.always(async () => {
  await service.close();
  await idp.stop();
});

const now = () => Math.floor(Date.now() / 1000);

/** Creates a client, and a user known to the identity provider in an organization that trusts it. */
async function createMember(role: Role = "owner") {
  const app = await service.createOrganization();
  const own = await service.createOrganization();
  await storage.organizationSettings.change(own.id, { enterpriseAuthorization: true }, OPERATOR);
  const user = await service.createUser([own.id], undefined, role);
  const subject: string = randomUUID();
  await storage.identities.link(user.id, { issuer: idp.issuer, subject, label: null }, OPERATOR);
  return { app, own, user, subject };
}

type Member = Awaited<ReturnType<typeof createMember>>;

const claimsOf = ({ app, subject }: Pick<Member, "app" | "subject">, changes: object = {}) => ({
  iss: idp.issuer,
  sub: subject,
  aud: service.url,
  client_id: app.clientId,
  resource: mcp,
  scope: "links:write",
  jti: randomUUID(),
  iat: now(),
  exp: now() + 300,
  ...changes,
});

const assertionFor = (member: Pick<Member, "app" | "subject">, changes: object = {}) =>
  idp.sign(claimsOf(member, changes), ID_JAG);

function exchange(app: TestOrganization, assertion: string, fields: Fields = {}): Promise<Answer> {
  return read(
    postForm(`${service.url}/oauth/token`, formOf({ grant_type: GRANT, assertion, ...fields }), basic(app)),
  );
}

const isAcceptedByMcp = async (token: unknown) => {
  const headers = { ...bearer(String(token)), accept: "application/json, text/event-stream" };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
  const answer = await fetch(mcp, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body,
  });
  return answer.status === 200;
};

test("the SDK's provider connects through the identity provider, without a browser", async (t) => {
  const member = await createMember();
  // The identity provider's side: it exchanges an ID token for an assertion (RFC 8693).
  idp.respond("/.well-known/oauth-authorization-server", (_request, response) =>
    sendJson(response, {
      issuer: idp.issuer,
      token_endpoint: `${idp.issuer}/token`,
      authorization_endpoint: `${idp.issuer}/authorize`,
      response_types_supported: ["code"],
    }),
  );
  idp.respond("/token", async (_request, response) => {
    const access_token = await assertionFor(member);
    const issued_token_type = "urn:ietf:params:oauth:token-type:id-jag";
    sendJson(response, { access_token, issued_token_type, token_type: "N_A", expires_in: 300 });
  });
  const provider = new CrossAppAccessProvider({
    clientId: member.app.clientId,
    clientSecret: member.app.clientSecret,
    expectedIssuer: service.url,
    assertion: async ({ authorizationServerUrl, resourceUrl, fetchFn }) => {
      const { jwtAuthGrant } = await discoverAndRequestJwtAuthGrant({
        idpUrl: idp.issuer,
        audience: authorizationServerUrl,
        resource: resourceUrl,
        idToken: "an ID token of the host",
        clientId: "the-host",
        fetchFn,
      });
      return jwtAuthGrant;
    },
  });
  const client = new Client({ name: "host", version: "1.0.0" });
  await client.connect(new StreamableHTTPClientTransport(new URL(mcp), { authProvider: provider }));
  t.teardown(() => client.close());
  const { structuredContent } = await client.callTool({ name: "whoami", arguments: {} });
  t.like(structuredContent, {
    organization: { id: member.own.id },
    client_id: member.app.clientId,
    user_id: member.user.id,
    scopes: ["links:read", "links:write"],
  });
});

test("server/discover lists the extension, if there is an identity provider", async (t) => {
  const plain = await startTestService();
  t.teardown(() => plain.close());
  const extensionsOf = async (at: TestService) => {
    const client = new Client({ name: "host", version: "1.0.0" });
    const requestInit = { headers: bearer(await at.token(await at.createOrganization())) };
    await client.connect(new StreamableHTTPClientTransport(new URL(at.urls.mcp), { requestInit }));
    t.teardown(() => client.close());
    return Object.keys(client.getServerCapabilities()?.extensions ?? {});
  };
  const always = "io.modelcontextprotocol/oauth-client-credentials";
  t.deepEqual(await extensionsOf(plain), [always]);
  t.deepEqual(await extensionsOf(service), [
    always,
    "io.modelcontextprotocol/enterprise-managed-authorization",
  ]);
});

test("the token is bound to the key of a DPoP proof, which an organization may require", async (t) => {
  const member = await createMember();
  const { clientId, clientSecret } = member.app;
  const config = await oidc.discovery(new URL(service.url), clientId, clientSecret, undefined, {
    execute: [oidc.allowInsecureRequests],
  });
  const DPoP = oidc.getDPoPHandle(config, await oidc.randomDPoPKeyPair());
  const request = async (options?: oidc.DPoPOptions) =>
    oidc.genericGrantRequest(config, GRANT, { assertion: await assertionFor(member) }, options);
  const { access_token, token_type } = await request({ DPoP });
  t.is(token_type, "dpop");
  t.false(await isAcceptedByMcp(access_token));
  await storage.organizationSettings.change(member.own.id, { requiresDpop: true }, OPERATOR);
  await t.throwsAsync(request(), { message: /./ });
  t.is((await request({ DPoP })).token_type, "dpop");
});

for (const typ of ["application/oauth-id-jag+jwt", "OAuth-ID-JAG+JWT"]) {
  test(`an assertion of the type ${typ} is accepted`, async (t) => {
    const member = await createMember();
    const { status, text } = await exchange(member.app, await idp.sign(claimsOf(member), { typ }));
    t.is(status, 200, text);
  });
}

test("an assertion that was sent with an unusable proof may be sent again", async (t) => {
  const member = await createMember();
  const assertion = await assertionFor(member);
  const { publicKey, privateKey } = await generateKeyPair("ES256");
  const url = `${service.url}/oauth/token`;
  const send = async (claims: object) => {
    const proof = await new SignJWT({ htm: "POST", htu: url, jti: randomUUID(), iat: now(), ...claims })
      .setProtectedHeader({ alg: "ES256", typ: "dpop+jwt", jwk: await exportJWK(publicKey) })
      .sign(privateKey);
    const headers = { ...basic(member.app), DPoP: proof };
    return read(postForm(url, { grant_type: GRANT, assertion }, headers));
  };
  // A client whose clock is wrong is asked to repeat the request with a nonce (RFC 9449 §8).
  const late = await send({ iat: now() - 3600 });
  t.is(late.body.error, "use_dpop_nonce");
  const nonce = late.headers.get("dpop-nonce");
  t.is((await send({ iat: now() - 3600, nonce })).status, 200);
  t.regex(String((await send({})).body.error_description), /already used/);
});

test("the grant is listed in the metadata, if there is an identity provider", async (t) => {
  const url = "/.well-known/oauth-authorization-server";
  const { body } = await read(fetch(service.url + url));
  t.true((body.grant_types_supported as string[]).includes(GRANT));
  t.deepEqual(body.authorization_grant_profiles_supported, [PROFILE]);
  const plain = await startTestService();
  t.teardown(() => plain.close());
  t.is((await read(fetch(plain.url + url))).body.authorization_grant_profiles_supported, undefined);
});

test("the response has no refresh token, and the token is for the resource of the assertion only", async (t) => {
  const member = await createMember();
  const { status, body } = await exchange(member.app, await assertionFor(member));
  t.is(status, 200);
  t.deepEqual(Object.keys(body).sort(), ["access_token", "expires_in", "scope", "token_type"]);
  t.like(body, { token_type: "Bearer", expires_in: 3600, scope: "links:write" });
  t.true(await isAcceptedByMcp(body.access_token));
  t.false(await isAcceptedByApi(service, body.access_token as string));
});

test("the grant is listed among the authorized apps, audited, and revoked like any other", async (t) => {
  const member = await createMember();
  const { body } = await exchange(member.app, await assertionFor(member));
  const api = apiAt(service.url, await firstPartyToken(service, member.user));
  const path = `/dashboard/organizations/${member.own.id}`;
  const apps = await api.send<{ data: { id: string; client_id: string; scopes: string[] }[] }>(
    "GET",
    `${path}/apps`,
  );
  t.like(apps.body.data[0], { client_id: member.app.clientId, scopes: ["links:write"] });
  const granted = { types: ["authorization.granted"] };
  const [entry] = await storage.audit.list(member.own.id, granted, 1);
  t.is(entry?.actor, member.user.id);
  t.is((await api.send("DELETE", `${path}/apps/${apps.body.data[0]?.id}`)).status, 204);
  t.false(await isAcceptedByMcp(body.access_token));
});

const SCOPES: [
  name: string,
  role: Role,
  claimed: string | undefined,
  requested: string | undefined,
  granted: string | RegExp,
][] = [
  ["what the assertion allows", "owner", "links:read webhooks:write", undefined, "links:read webhooks:write"],
  ["the intersection with the request", "owner", "links:write webhooks:read", "links:read", "links:read"],
  ["no more than the role allows", "member", "links:read webhooks:write", undefined, "links:read"],
  ["basic access without any scope", "owner", undefined, undefined, "links:read links:write"],
  ["nothing that the assertion does not name", "owner", "links:read", "webhooks:write", /^invalid_scope$/],
  ["nothing if the role allows none of it", "member", "webhooks:write", undefined, /^invalid_scope$/],
  ["nothing if the assertion names only unknown scopes", "owner", "files:read", undefined, /^invalid_scope$/],
];

for (const [name, role, claimed, requested, granted] of SCOPES) {
  test(`the token has ${name}`, async (t) => {
    const member = await createMember(role);
    const { body } = await exchange(member.app, await assertionFor(member, { scope: claimed }), {
      scope: requested,
    });
    if (typeof granted === "string") t.is(body.scope, granted);
    else t.regex(String(body.error), granted);
  });
}

type Refusal = [
  name: string,
  error: string,
  assertion: (member: Member) => Promise<string>,
  description?: RegExp,
];

const REFUSED: Refusal[] = [
  ["another issuer", "invalid_grant", (member) => assertionFor(member, { iss: "https://other.example" })],
  ["another audience", "invalid_grant", (member) => assertionFor(member, { aud: "https://other.example" })],
  [
    "several audiences",
    "invalid_grant",
    (member) => assertionFor(member, { aud: [service.url, mcp] }),
    /single value/,
  ],
  [
    "another client",
    "invalid_grant",
    (member) => assertionFor(member, { client_id: "lgc_AAAAAAAAAAAAAAAAAAAAAA" }),
    /client_id/,
  ],
  [
    "no client",
    "invalid_grant",
    (member) => assertionFor(member, { client_id: undefined }),
    /client_id is missing/,
  ],
  [
    "another resource",
    "invalid_target",
    (member) => assertionFor(member, { resource: "https://other.example/mcp" }),
  ],
  [
    "an unknown subject",
    "invalid_grant",
    (member) => assertionFor(member, { sub: "unknown-subject" }),
    /not linked/,
  ],
  ["no subject", "invalid_grant", (member) => assertionFor(member, { sub: undefined }), /sub is missing/],
  [
    "a subject that is a number, which some databases take for any text",
    "invalid_grant",
    (member) => assertionFor(member, { sub: 0 }),
    /sub must be a string/,
  ],
  [
    "a subject that is an object",
    "invalid_grant",
    (member) => assertionFor(member, { sub: { subject: member.subject } }),
    /sub must be a string/,
  ],
  [
    "scopes that are a list",
    "invalid_grant",
    (member) => assertionFor(member, { scope: ["links:read"] }),
    /scope must be a string/,
  ],
  [
    "scopes that are null",
    "invalid_grant",
    (member) => assertionFor(member, { scope: null }),
    /scope must be a string/,
  ],
  [
    "a list of other resources",
    "invalid_target",
    (member) => assertionFor(member, { resource: ["https://other.example/mcp"] }),
  ],
  ["no id", "invalid_grant", (member) => assertionFor(member, { jti: undefined }), /jti is missing/],
  ["expired", "invalid_grant", (member) => assertionFor(member, { exp: now() - 60 }), /expired/],
  ["no expiry", "invalid_grant", (member) => assertionFor(member, { exp: undefined }), /exp is missing/],
  [
    "older than five minutes",
    "invalid_grant",
    (member) => assertionFor(member, { iat: now() - 400, exp: now() + 400 }),
    /too old/,
  ],
  ["an ID token", "invalid_request", (member) => idp.sign(claimsOf(member))],
  ["no JWT", "invalid_grant", async () => "a.b.c", /malformed/],
  ["another key", "invalid_grant", (member) => signWithForeignIdJag(member)],
  [
    "a tenant that is another organization",
    "invalid_grant",
    (member) => assertionFor(member, { aud_tenant: member.app.id }),
    /no organization/,
  ],
];

async function signWithForeignIdJag(member: Member): Promise<string> {
  const { privateKey } = await generateKeyPair("RS256");
  return new SignJWT(claimsOf(member))
    .setProtectedHeader({ alg: "RS256", kid: idp.key.kid, ...ID_JAG })
    .sign(privateKey);
}

for (const [name, error, assertion, description = /./] of REFUSED) {
  test(`an assertion is refused: ${name}`, async (t) => {
    const member = await createMember();
    const { status, body } = await exchange(member.app, await assertion(member));
    t.true(status === 400 || status === 401, String(status));
    t.is(body.error, error);
    t.regex(String(body.error_description), description);
  });
}

test("the client must authenticate", async (t) => {
  const member = await createMember();
  const fields = { grant_type: GRANT, assertion: await assertionFor(member), client_id: member.app.clientId };
  t.is((await read(postForm(`${service.url}/oauth/token`, fields))).status, 401);
  const wrong = { ...member.app, clientSecret: "lgs_wrong" };
  t.is((await exchange(wrong, await assertionFor(member))).status, 401);
  t.is((await exchange(member.app, await assertionFor(member))).status, 200);
});

test("the client may authenticate with a key", async (t) => {
  const member = await createMember();
  const { publicKey, privateKey } = await generateKeyPair("ES256");
  const { id, clientId } = member.app;
  await storage.clients.addKey(
    id,
    await parsePublicKey(JSON.stringify(await exportJWK(publicKey))),
    OPERATOR,
  );
  const client_assertion = await new SignJWT({
    iss: clientId,
    sub: clientId,
    aud: service.url,
    jti: randomUUID(),
  })
    .setProtectedHeader({ alg: "ES256" })
    .setIssuedAt()
    .setExpirationTime("1m")
    .sign(privateKey);
  const client_assertion_type = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
  const fields = {
    grant_type: GRANT,
    assertion: await assertionFor(member),
    client_assertion,
    client_assertion_type,
  };
  t.is((await read(postForm(`${service.url}/oauth/token`, fields))).status, 200);
});

test("of 20 concurrent uses of an assertion, one succeeds", async (t) => {
  const member = await createMember();
  const assertion = await assertionFor(member);
  const answers = await Promise.all(Array.from({ length: 20 }, () => exchange(member.app, assertion)));
  t.deepEqual(answers.map(({ status }) => status).sort(), [200, ...Array.from({ length: 19 }, () => 400)]);
  const api = apiAt(service.url, await firstPartyToken(service, member.user));
  const { body } = await api.send<{ data: unknown[] }>(
    "GET",
    `/dashboard/organizations/${member.own.id}/apps`,
  );
  t.is(body.data.length, 1);
});

test("without the organization's consent, on the Free plan, after leaving or for a disabled user there is no token", async (t) => {
  const errorOf = async (member: Member) =>
    (await exchange(member.app, await assertionFor(member))).body.error;
  const off = await createMember();
  await storage.organizationSettings.change(off.own.id, { enterpriseAuthorization: false }, OPERATOR);
  t.is(await errorOf(off), "invalid_grant");
  const free = await createMember();
  await storage.organizations.setPlan(free.own.id, "free", OPERATOR);
  t.is(await errorOf(free), "unauthorized_client");
  const appFree = await createMember();
  await storage.organizations.setPlan(appFree.app.id, "free", OPERATOR);
  t.is(await errorOf(appFree), "unauthorized_client");
  const left = await createMember("member");
  const { id: organizationId } = left.own;
  await storage.members.remove({
    organizationId,
    userId: left.user.id,
    manageableRoles: ["member"],
    actor: OPERATOR,
  });
  t.is(await errorOf(left), "invalid_grant");
});

test("a user of several such organizations acts for the one that aud_tenant names", async (t) => {
  const member = await createMember();
  const second = await service.createOrganization();
  await storage.organizationSettings.change(second.id, { enterpriseAuthorization: true }, OPERATOR);
  await storage.organizations.addMember(second.id, member.user.id, "member", OPERATOR);
  const { body } = await exchange(member.app, await assertionFor(member));
  t.regex(String(body.error_description), /aud_tenant/);
  const { status } = await exchange(member.app, await assertionFor(member, { aud_tenant: second.id }));
  t.is(status, 200);
  const [entry] = await storage.audit.list(second.id, {}, 1);
  t.is(entry?.type, "authorization.granted");
});

test("an organization that requires a second factor refuses owners and admins without it", async (t) => {
  for (const role of ["owner", "admin", "member"] as const) {
    const member = await createMember(role);
    await storage.organizationSettings.change(member.own.id, { requiresSecondFactor: true }, OPERATOR);
    for (const amr of [undefined, ["pwd"], "mfa", { mfa: true }]) {
      const { status, body } = await exchange(member.app, await assertionFor(member, { amr }));
      t.is(status, role === "member" ? 200 : 400, `${role} ${JSON.stringify(amr)}`);
      if (role !== "member") t.like(body, { error: "invalid_grant" });
    }
    const { status } = await exchange(member.app, await assertionFor(member, { amr: ["pwd", "mfa"] }));
    t.is(status, 200, role);
  }
});

test("a server without an identity provider refuses every assertion", async (t) => {
  const plain = await startTestService();
  t.teardown(() => plain.close());
  const app = await plain.createOrganization();
  const assertion = await assertionFor({ app, subject: "ada" }, { aud: plain.url });
  const answer = await read(
    postForm(`${plain.url}/oauth/token`, { grant_type: GRANT, assertion }, basic(app)),
  );
  t.is(answer.body.error, "invalid_grant");
});
