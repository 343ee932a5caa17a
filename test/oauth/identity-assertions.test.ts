import {
  Client,
  CrossAppAccessProvider,
  discoverAndRequestJwtAuthGrant,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import test from "ava";
import * as oidc from "openid-client";
import type { Role } from "../../resources/access/scopes.ts";
import { apiAt } from "../harness/clients/api.ts";
import { discover } from "../harness/clients/authorization.ts";
import type { Fields } from "../harness/clients/authorization-request.ts";
import { createKeyFor, signAssertion, withAssertion } from "../harness/clients/client-key.ts";
import { firstPartyToken } from "../harness/clients/dashboard.ts";
import { createDpopKey, requestWithProof } from "../harness/clients/dpop.ts";
import { postMcp } from "../harness/clients/mcp.ts";
import { isAcceptedByApi, outcomeOf, postAsClient, read } from "../harness/clients/oauth.ts";
import { now } from "../harness/clock.ts";
import { providerSettings } from "../harness/providers/identity-provider.ts";
import { sendJson, signWithForeignKey, startTokenIssuer } from "../harness/providers/token-issuer.ts";
import {
  bearer,
  OPERATOR,
  postForm,
  startTestService,
  type TestOrganization,
  type TestService,
} from "../harness/service.ts";

const GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const PROFILE = "urn:ietf:params:oauth:grant-profile:id-jag";
const ID_JAG = { typ: "oauth-id-jag+jwt" };

const idp = await startTokenIssuer();
const service = await startTestService(providerSettings(idp.issuer));
const { storage } = service;
const mcp = `${service.url}/mcp`;

/** Creates a client, and a user known to the identity provider in an organization that trusts it. */
async function createMember(role: Role = "owner") {
  const app = await service.createOrganization();
  const own = await service.createOrganization();
  await storage.organizationSettings.change(own.id, { enterpriseAuthorization: true }, OPERATOR);
  const user = await service.createUser([own.id], undefined, role);
  const subject: string = crypto.randomUUID();
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
  jti: crypto.randomUUID(),
  iat: now(),
  exp: now() + 300,
  ...changes,
});

const assertionFor = (member: Pick<Member, "app" | "subject">, changes: object = {}) =>
  idp.sign(claimsOf(member, changes), ID_JAG);

const exchange = (app: TestOrganization, assertion: string, fields: Fields = {}) =>
  postAsClient(service, "token", app, { grant_type: GRANT, assertion, ...fields });

const isAcceptedByMcp = async (token: unknown) =>
  (await postMcp(mcp, { jsonrpc: "2.0", id: 1, method: "tools/list" }, bearer(String(token)))).status === 200;

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

test("without an identity provider, the grant and the extension aren't listed, and no assertion is accepted", async (t) => {
  const plain = await startTestService();
  const listedBy = async (at: TestService) => {
    const client = new Client({ name: "host", version: "1.0.0" });
    const requestInit = { headers: bearer(await at.token(await at.createOrganization())) };
    await client.connect(new StreamableHTTPClientTransport(new URL(at.urls.mcp), { requestInit }));
    t.teardown(() => client.close());
    const { body } = await read(fetch(`${at.url}/.well-known/oauth-authorization-server`));
    t.true((body.grant_types_supported as string[]).includes(GRANT));
    return {
      extensions: Object.keys(client.getServerCapabilities()?.extensions ?? {}),
      profiles: body.authorization_grant_profiles_supported,
    };
  };
  const always = "io.modelcontextprotocol/oauth-client-credentials";
  const managed = "io.modelcontextprotocol/enterprise-managed-authorization";
  t.deepEqual(await listedBy(plain), { extensions: [always], profiles: undefined });
  t.deepEqual(await listedBy(service), { extensions: [always, managed], profiles: [PROFILE] });
  const app = await plain.createOrganization();
  const assertion = await assertionFor({ app, subject: "ada" }, { aud: plain.url });
  const answer = postAsClient(plain, "token", app, { grant_type: GRANT, assertion });
  t.is(await outcomeOf(answer), "400 invalid_grant");
});

test("the token is bound to the key of a DPoP proof, which an organization may require", async (t) => {
  const member = await createMember();
  const config = await discover(service, member.app);
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

test("an assertion that was sent with an unusable proof may be sent again", async (t) => {
  const { app, subject } = await createMember();
  const key = await createDpopKey();
  const fields = { grant_type: GRANT, assertion: await assertionFor({ app, subject }) };
  const send = (claims: Record<string, unknown>) =>
    requestWithProof(service, app, key, { fields, proof: { claims } });
  // A client whose clock is wrong is asked to repeat the request with a nonce (RFC 9449 §8).
  const late = await send({ iat: now() - 3600 });
  t.is(late.body.error, "use_dpop_nonce");
  const nonce = late.headers.get("dpop-nonce");
  t.is((await send({ iat: now() - 3600, nonce })).status, 200);
  t.regex(String((await send({})).body.error_description), /already used/);
});

test("the response has no refresh token, and the token is for the resource of the assertion only", async (t) => {
  const member = await createMember();
  for (const typ of [ID_JAG.typ, "application/oauth-id-jag+jwt", "OAuth-ID-JAG+JWT"]) {
    const { status, body, text } = await exchange(member.app, await idp.sign(claimsOf(member), { typ }));
    t.is(status, 200, text);
    t.deepEqual(Object.keys(body).sort(), ["access_token", "expires_in", "scope", "token_type"]);
    t.like(body, { token_type: "Bearer", expires_in: 3600, scope: "links:write" });
    t.true(await isAcceptedByMcp(body.access_token));
    t.false(await isAcceptedByApi(service, body.access_token));
  }
});

test("the grant is listed among the authorized apps, audited, and revoked like any other", async (t) => {
  const member = await createMember();
  const { body } = await exchange(member.app, await assertionFor(member));
  const api = apiAt(service.url, await firstPartyToken(service, member.user));
  const path = `/dashboard/organizations/${member.own.id}`;
  const [app] = (await api.get<{ data: { id: string }[] }>(`${path}/apps`)).body.data;
  t.like(app, { client_id: member.app.clientId, scopes: ["links:write"] });
  const [entry] = await storage.audit.list(member.own.id, { types: ["authorization.granted"] }, 1);
  t.is(entry?.actor, member.user.id);
  t.is((await api.send("DELETE", `${path}/apps/${app?.id}`)).status, 204);
  t.false(await isAcceptedByMcp(body.access_token));
});

type Scope = string | undefined;
const SCOPES: [name: string, role: Role, claimed: Scope, requested: Scope, granted: string][] = [
  ["what the assertion allows", "owner", "links:read webhooks:write", undefined, "links:read webhooks:write"],
  ["the intersection with the request", "owner", "links:write webhooks:read", "links:read", "links:read"],
  ["no more than the role allows", "member", "links:read webhooks:write", undefined, "links:read"],
  ["basic access without any scope", "owner", undefined, undefined, "links:read links:write"],
  ["nothing that the assertion does not name", "owner", "links:read", "webhooks:write", "invalid_scope"],
  ["nothing if the role allows none of it", "member", "webhooks:write", undefined, "invalid_scope"],
  ["nothing if the assertion names only unknown scopes", "owner", "files:read", undefined, "invalid_scope"],
];

for (const [name, role, claimed, requested, granted] of SCOPES)
  test(`the token has ${name}`, async (t) => {
    const member = await createMember(role);
    const assertion = await assertionFor(member, { scope: claimed });
    const { body } = await exchange(member.app, assertion, { scope: requested });
    t.is(body.error ?? body.scope, granted);
  });

const NO_ORGANIZATION = /^invalid_grant.* no organiz/;
const WRONG_CLAIMS: [name: string, claims: (member: Member) => object, error: RegExp][] = [
  ["another audience", () => ({ aud: "https://other.example" }), /^invalid_grant/],
  ["several audiences", () => ({ aud: [service.url, mcp] }), /^invalid_grant.* single value/],
  ["another client", () => ({ client_id: "lgc_AAAAAAAAAAAAAAAAAAAAAA" }), /^invalid_grant.* client_id names/],
  ["no client", () => ({ client_id: undefined }), /^invalid_grant.* client_id is missing/],
  ["another resource", () => ({ resource: "https://other.example/mcp" }), /^invalid_target/],
  ["an unknown subject", () => ({ sub: "unknown-subject" }), /^invalid_grant.* not linked/],
  ["no subject", () => ({ sub: undefined }), /^invalid_grant.* sub is missing/],
  ["scopes that are a list", () => ({ scope: ["links:read"] }), /^invalid_grant.* scope must be a string/],
  ["no id", () => ({ jti: undefined }), /^invalid_grant.* jti is missing/],
  ["older than five minutes", () => ({ iat: now() - 400, exp: now() + 400 }), /^invalid_grant.* too old/],
  ["a tenant that is another organization", ({ app }) => ({ aud_tenant: app.id }), NO_ORGANIZATION],
];

const REFUSED: [name: string, assertion: (member: Member) => Promise<string>, error: RegExp][] = [
  ...WRONG_CLAIMS.map(([name, claims, error]): (typeof REFUSED)[number] => [
    name,
    (member) => assertionFor(member, claims(member)),
    error,
  ]),
  ["an ID token", (member) => idp.sign(claimsOf(member)), /^invalid_request/],
  ["another key", (member) => signWithForeignKey(claimsOf(member), idp.key.kid, ID_JAG), /^invalid_grant/],
];

for (const [name, assertion, error] of REFUSED)
  test(`an assertion is refused: ${name}`, async (t) => {
    const member = await createMember();
    const { status, body } = await exchange(member.app, await assertion(member));
    t.true(status === 400 || status === 401, String(status));
    t.regex(`${body.error}: ${body.error_description}`, error);
  });

test("the client must authenticate, by a secret or a key", async (t) => {
  const member = await createMember();
  const fields = { grant_type: GRANT, assertion: await assertionFor(member), client_id: member.app.clientId };
  t.is((await read(postForm(`${service.url}/oauth/token`, fields))).status, 401);
  const wrong = { ...member.app, clientSecret: "lgs_wrong" };
  t.is((await exchange(wrong, await assertionFor(member))).status, 401);
  t.is((await exchange(member.app, await assertionFor(member))).status, 200);
  const own = await signAssertion(service, member.app, await createKeyFor(service, member.app));
  const keyed = withAssertion(own, { ...fields, assertion: await assertionFor(member) });
  t.is((await read(postForm(`${service.url}/oauth/token`, keyed))).status, 200);
});

test("there is no token without the organization's consent, on the Free plan, after leaving or for a disabled user", async (t) => {
  const { organizationSettings, organizations, members, disabledAccounts } = storage;
  const leave = { manageableRoles: ["member"], actor: OPERATOR } as const;
  const refusals: [error: string, refuse: (member: Member) => Promise<unknown>][] = [
    [
      "invalid_grant",
      ({ own }) => organizationSettings.change(own.id, { enterpriseAuthorization: false }, OPERATOR),
    ],
    ["unauthorized_client", ({ own }) => organizations.setPlan(own.id, "free", OPERATOR)],
    ["unauthorized_client", ({ app }) => organizations.setPlan(app.id, "free", OPERATOR)],
    [
      "invalid_grant",
      ({ own, user }) => members.remove({ organizationId: own.id, userId: user.id, ...leave }),
    ],
    ["invalid_grant", ({ user }) => disabledAccounts.disable(user.id, null, OPERATOR)],
  ];
  for (const [error, refuse] of refusals) {
    const member = await createMember("member");
    await refuse(member);
    t.is(await outcomeOf(exchange(member.app, await assertionFor(member))), `400 ${error}`);
  }
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
