import test from "ava";
import * as oidc from "openid-client";
import { OPERATOR } from "../../../resources/events/types.ts";
import { isAcceptedByApi, postAsClient } from "../../harness/clients/oauth.ts";
import {
  addRule,
  createTrustingOrganization,
  exchange,
  FORMS,
  type Form,
  isRefused,
  jobToken,
} from "../../harness/clients/workload.ts";
import {
  githubClaims,
  gitlabClaims,
  kubernetesClaims,
  startTokenIssuer,
} from "../../harness/providers/token-issuer.ts";
import { bearer, startTestService, type TestOrganization } from "../../harness/service.ts";

const [service, issuer] = await Promise.all([startTestService(), startTokenIssuer()]);
const organization = await createTrustingOrganization(service, issuer);

test.after.always(() => Promise.all([service.close(), issuer.stop()]));

const now = () => Math.floor(Date.now() / 1000);

for (const form of Object.keys(FORMS) as Form[]) {
  test(`a job sends its token as ${form} and gets an access token for 15 minutes`, async (t) => {
    const { status, body, headers } = await exchange(
      service,
      organization,
      form,
      await jobToken(service, issuer),
    );
    t.is(status, 200, JSON.stringify(body));
    const { access_token, ...rest } = body;
    t.deepEqual(rest, { token_type: "Bearer", expires_in: 900, scope: "links:write" });
    t.is(headers.get("cache-control"), "no-store");
    t.regex(String(access_token), /^lga_/);
    t.true(await isAcceptedByApi(service, access_token));
    const { body: token } = await postAsClient(service, "introspect", organization, {
      token: String(access_token),
    });
    t.is(token.client_id, organization.clientId);
    t.is(token.aud, service.url);
    t.is(Number(token.exp) - Number(token.iat), 900);
    const link = await fetch(`${service.url}/v1/links`, {
      method: "POST",
      headers: { ...bearer(String(access_token)), "content-type": "application/json" },
      body: JSON.stringify({ url: "https://example.com/" }),
    });
    t.is(link.status, 201);
    const hooks = await fetch(`${service.url}/v1/webhooks`, { headers: bearer(String(access_token)) });
    t.is(hooks.status, 403);
  });
}

const PLATFORMS: [
  name: string,
  subject: string,
  claims: typeof githubClaims,
  further: Record<string, string>,
  header: object,
][] = [
  [
    "GitHub Actions",
    "repo:octo-org@65/octo-repo@74:ref:refs/heads/main",
    githubClaims,
    { repository_id: "74" },
    {},
  ],
  [
    "GitLab CI/CD",
    "project_path:my-group/my-project:ref_type:branch:ref:main",
    gitlabClaims,
    { ref_protected: "true", runner_id: "1" },
    {},
  ],
  [
    "Kubernetes",
    "system:serviceaccount:my-namespace:my-service-account",
    kubernetesClaims,
    {},
    { typ: undefined },
  ],
];

for (const [name, subject, claimsOf, claims, header] of PLATFORMS) {
  test(`a token as ${name} issues it is accepted`, async (t) => {
    const own = await createTrustingOrganization(service, issuer, { subject, claims });
    const token = await issuer.sign(claimsOf(issuer.issuer, service.url), header as Record<string, unknown>);
    const { status, text } = await exchange(service, own, "grant", token);
    t.is(status, 200, text);
  });
}

const SCOPES: [what: string, rule: string, requested: string | undefined, granted: string][] = [
  ["no scope gets those of the rule", "links:write webhooks:read", undefined, "links:write webhooks:read"],
  ["fewer scopes gets these", "links:write webhooks:read", "webhooks:read", "webhooks:read"],
  ["a read scope that a write scope includes gets it", "links:write", "links:read", "links:read"],
  [
    "more scopes than the rule allows gets those of the rule",
    "links:read",
    "links:read links:write webhooks:read",
    "links:read",
  ],
  ["openid gets the others", "links:read", "openid links:read", "links:read"],
];

for (const [what, rule, scope, granted] of SCOPES) {
  test(`a request for ${what}`, async (t) => {
    const own = await createTrustingOrganization(service, issuer, {
      scopes: rule.split(" ") as "links:read"[],
    });
    const { body } = await exchange(service, own, "grant", await jobToken(service, issuer), { scope });
    t.is(body.scope, granted, JSON.stringify(body));
  });
}

test("a subject with a * at the end matches anything after the prefix, and nothing shorter", async (t) => {
  const own = await createTrustingOrganization(service, issuer, {
    subject: "repo:octo-org@65/octo-repo@74:*",
  });
  for (const [sub, status] of [
    ["repo:octo-org@65/octo-repo@74:pull_request", 200],
    ["repo:octo-org@65/octo-repo@74:", 200],
    ["repo:octo-org@65/octo-repo@74", 400],
    ["repo:octo-org@65/octo-repo@745:ref:refs/heads/main", 400],
    ["x repo:octo-org@65/octo-repo@74:ref:refs/heads/main", 400],
  ] as const) {
    t.is(
      (await exchange(service, own, "grant", await jobToken(service, issuer, { sub }))).status,
      status,
      sub,
    );
  }
});

test("the scopes of several matching rules add up, and all of them were used", async (t) => {
  const own = await createTrustingOrganization(service, issuer);
  await addRule(service, own, {
    issuer: issuer.issuer,
    subject: "repo:octo-org@65/*",
    scopes: ["webhooks:read"],
  });
  await addRule(service, own, {
    issuer: issuer.issuer,
    subject: "repo:octo-org@65/other",
    scopes: ["webhooks:write"],
  });
  const { body } = await exchange(service, own, "grant", await jobToken(service, issuer));
  t.is(body.scope, "links:write webhooks:read");
  const rules = await service.storage.trustRules.list(own.id);
  t.deepEqual(
    rules.map(({ lastUsedAt }) => lastUsedAt !== null),
    [true, true, false],
  );
});

test("a rule may require another audience", async (t) => {
  const own = await createTrustingOrganization(service, issuer, { audience: "https://github.com/octo-org" });
  const aud = "https://github.com/octo-org";
  t.is((await exchange(service, own, "grant", await jobToken(service, issuer, { aud }))).status, 200);
  isRefused(
    t,
    "grant",
    await exchange(service, own, "grant", await jobToken(service, issuer)),
    /aud has an unexpected value$/,
  );
});

test("a token may be requested for one resource", async (t) => {
  const resource = `${service.url}/mcp`;
  const { body } = await exchange(service, organization, "grant", await jobToken(service, issuer), {
    resource,
  });
  t.false(await isAcceptedByApi(service, body.access_token));
});

test("a clock that differs by up to 30 seconds is accepted", async (t) => {
  for (const claims of [{ iat: now() + 20, nbf: now() + 20 }, { exp: now() - 20 }]) {
    const { status, text } = await exchange(
      service,
      organization,
      "grant",
      await jobToken(service, issuer, claims),
    );
    t.is(status, 200, text);
  }
});

test("the client's secret works beside trust rules", async (t) => {
  const { status, body } = await postAsClient(service, "token", organization, {
    grant_type: "client_credentials",
  });
  t.is(status, 200);
  t.is(body.expires_in, 3600);
  t.is(body.scope, "links:read links:write webhooks:read webhooks:write");
});

const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/** Configures openid-client, which knows no secret. */
function discover({ clientId }: TestOrganization, authentication: oidc.ClientAuth) {
  return oidc.discovery(new URL(service.url), clientId, undefined, authentication, {
    execute: [oidc.allowInsecureRequests],
  });
}

test("openid-client sends the token of a job as a grant", async (t) => {
  const organization = await createTrustingOrganization(service, issuer);
  const config = await discover(organization, oidc.None());
  t.true(config.serverMetadata().grant_types_supported?.includes(JWT_BEARER));
  const assertion = await jobToken(service, issuer);
  const tokens = await oidc.genericGrantRequest(config, JWT_BEARER, { assertion, scope: "links:read" });
  t.is(tokens.scope, "links:read");
  t.is(tokens.expires_in, 900);
  t.is(tokens.refresh_token, undefined);
  t.true(await isAcceptedByApi(service, tokens.access_token));
  const again = oidc.genericGrantRequest(config, JWT_BEARER, { assertion });
  await t.throwsAsync(again, {
    message: /invalid_grant|error in the response body/,
    code: "OAUTH_RESPONSE_BODY_ERROR",
  });
});

test("openid-client authenticates with the token of a job", async (t) => {
  const organization = await createTrustingOrganization(service, issuer);
  const assertion = await jobToken(service, issuer);
  const config = await discover(organization, (_server, client, body) => {
    body.set("client_id", client.client_id);
    body.set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
    body.set("client_assertion", assertion);
  });
  const tokens = await oidc.clientCredentialsGrant(config);
  t.is(tokens.scope, "links:write");
  t.true(await isAcceptedByApi(service, tokens.access_token));
});

test("openid-client binds the access token of a job to a key", async (t) => {
  const organization = await createTrustingOrganization(service, issuer);
  const config = await discover(organization, oidc.None());
  const DPoP = oidc.getDPoPHandle(config, await oidc.randomDPoPKeyPair("ES256"));
  const assertion = await jobToken(service, issuer);
  const tokens = await oidc.genericGrantRequest(config, JWT_BEARER, { assertion }, { DPoP });
  t.is(tokens.token_type, "dpop");
  t.false(await isAcceptedByApi(service, tokens.access_token));
  const url = new URL(`${service.url}/v1/organization`);
  const answer = await oidc.fetchProtectedResource(config, tokens.access_token, url, "GET", null, undefined, {
    DPoP,
  });
  t.is(answer.status, 200);
});

for (const form of Object.keys(FORMS) as Form[]) {
  test(`where DPoP is required, a token sent as ${form} without a proof is refused and can still be used`, async (t) => {
    const organization = await createTrustingOrganization(service, issuer);
    await service.storage.organizationSettings.change(organization.id, { requiresDpop: true }, OPERATOR);
    const assertion = await jobToken(service, issuer);
    const { status, body } = await exchange(service, organization, form, assertion);
    t.is(status, 400);
    t.is(body.error, "invalid_dpop_proof");
    await service.storage.organizationSettings.change(organization.id, { requiresDpop: false }, OPERATOR);
    t.is((await exchange(service, organization, form, assertion)).status, 200);
  });
}

test("the client revokes the access token of a job with its secret", async (t) => {
  const organization = await createTrustingOrganization(service, issuer);
  const { body } = await exchange(service, organization, "grant", await jobToken(service, issuer));
  t.is(
    (await postAsClient(service, "revoke", organization, { token: String(body.access_token) })).status,
    200,
  );
  t.false(await isAcceptedByApi(service, body.access_token));
});
