import test from "ava";
import type { Problem } from "../../../resources/http/problem.ts";
import { validate as validateWith } from "../../../resources/http/validate.ts";
import { readSettings } from "../../../server/settings/config.ts";
import { publicUrlsOf } from "../../../server/settings/public-urls.ts";
import { ruleContextOf, trustRuleSchema } from "../../../server/workload-identity/trust-rules.ts";
import { PRODUCTION } from "../../harness/production.ts";

const RULE = {
  name: "Deploy",
  issuer: "https://token.actions.githubusercontent.com",
  subject: "repo:octo-org/octo-repo:ref:refs/heads/main",
  scopes: ["links:write"],
};

function validationWith(environment: Record<string, string> = {}) {
  const settings = readSettings({ BASE_URL: "https://links.example", ...environment });
  const schema = trustRuleSchema(ruleContextOf(settings, publicUrlsOf(settings, 443)));
  return (input: Record<string, unknown>) => validateWith(schema, input);
}

const validate = validationWith();
const inProduction = validationWith(PRODUCTION);
const withAllowedHosts = validationWith({
  ...PRODUCTION,
  WEBHOOK_ALLOW_HOSTS: "gitlab.internal,10.0.0.7:8443",
});

test("a rule without an audience and claims gets this server's issuer and none", (t) => {
  t.deepEqual(validate(RULE), {
    ...RULE,
    scopes: ["links:write"],
    audience: "https://links.example",
    claims: {},
  });
});

test("scopes are stored once each, in the order of the API", (t) => {
  const scopes = ["webhooks:read", "links:write", "webhooks:read", "links:read"];
  t.deepEqual(validate({ ...RULE, scopes }).scopes, ["links:read", "links:write", "webhooks:read"]);
});

const VALID: [what: string, changes: object][] = [
  ["an issuer with a path", { issuer: "https://oidc.eks.eu-north-1.amazonaws.com/id/0123456789ABCDEF" }],
  ["an issuer with a trailing slash", { issuer: "https://eastus.oic.prod-aks.azure.com/tenant/cluster/" }],
  ["an issuer on loopback with http", { issuer: "http://localhost:8080" }],
  ["an issuer on loopback with https", { issuer: "https://127.0.0.1:8443" }],
  ["a subject with a * at the end", { subject: "repo:octo-org/octo-repo:*" }],
  ["a subject with a space", { issuer: "https://issuer.example", subject: "a workload" }],
  ["a subject of 255 characters", { issuer: "https://issuer.example", subject: "s".repeat(255) }],
  [
    "a subject without the owner that a claim gives",
    { subject: "environment:production", claims: { repository_owner_id: "65" } },
  ],
  ["any subject of an owner given by a claim", { subject: "repo:*", claims: { repository_owner_id: "65" } }],
  [
    "any subject prefix of an issuer of its own",
    { issuer: "https://gitlab.example", subject: "project_path:*" },
  ],
  [
    "an organization on HCP Terraform",
    { issuer: "https://app.terraform.io", subject: "organization:acme:project:links:workspace:*" },
  ],
  [
    "an organization on Buildkite",
    { issuer: "https://agent.buildkite.com", subject: "organization:acme:pipeline:links:*" },
  ],
  [
    "an ID as subject on Buildkite, and the organization in a claim",
    { issuer: "https://agent.buildkite.com", subject: "0184990a", claims: { organization_id: "0184990b" } },
  ],
  ["a team on Vercel", { issuer: "https://oidc.vercel.com", subject: "owner:acme:project:links:*" }],
  ["a Google account", { issuer: "https://accounts.google.com", subject: "102345678901234567890" }],
  [
    "a tenant of Microsoft",
    {
      issuer: "https://login.microsoftonline.com/72f988bf-86f1-41af-91ab-2d7cd011db47/v2.0",
      subject: "a-workload",
    },
  ],
  ["a claim with a URL as name", { claims: { "https://example.com/claim": "value" } }],
];

for (const [what, changes] of VALID) {
  test(`a rule with ${what} is accepted`, (t) => {
    t.like(validate({ ...RULE, ...changes }), changes);
  });
}

const SCOPE_LIST = "must be a list of one or more of links:read, links:write, webhooks:read, webhooks:write";
const TEXT = "must be one line without spaces at the beginning and the end";
const INVALID: [what: string, changes: object, field: string, message: string][] = [
  ["no name", { name: undefined }, "name", "is required"],
  ["an empty name", { name: "" }, "name", "must be 1 to 100 characters long"],
  ["a name of 101 characters", { name: "n".repeat(101) }, "name", "must be 1 to 100 characters long"],
  ["a name with a line break", { name: "a\nb" }, "name", TEXT],
  ["a name that is no text", { name: 1 }, "name", "must be a string"],
  ["no issuer", { issuer: undefined }, "issuer", "is required"],
  ["an issuer with http", { issuer: "http://issuer.example" }, "issuer", "must be an https URL"],
  [
    "an issuer that is no URL",
    { issuer: "issuer.example" },
    "issuer",
    "must be an https URL, exactly as in the iss claim of the tokens",
  ],
  [
    "an issuer with another scheme",
    { issuer: "ftp://issuer.example" },
    "issuer",
    "must be an https URL, exactly as in the iss claim of the tokens",
  ],
  [
    "an issuer with a space",
    { issuer: "https://issuer.example/a b" },
    "issuer",
    "must be an https URL, exactly as in the iss claim of the tokens",
  ],
  [
    "an issuer with a query",
    { issuer: "https://issuer.example/?a=b" },
    "issuer",
    "must not contain a query or a fragment",
  ],
  [
    "an issuer with an empty fragment",
    { issuer: "https://issuer.example/#" },
    "issuer",
    "must not contain a query or a fragment",
  ],
  [
    "an issuer with a password",
    { issuer: "https://a:b@issuer.example" },
    "issuer",
    "must not contain a username or password",
  ],
  ["an issuer on another port", { issuer: "https://issuer.example:8443" }, "issuer", "must use port 443"],
  [
    "an issuer on a private address",
    { issuer: "https://10.0.0.1" },
    "issuer",
    "must be on the public internet: its keys are fetched from there",
  ],
  [
    "an issuer inside a cluster",
    { issuer: "https://kubernetes.default.svc.cluster.local" },
    "issuer",
    "must be on the public internet: its keys are fetched from there",
  ],
  [
    "an issuer on a metadata service",
    { issuer: "https://0xa9fea9fe" },
    "issuer",
    "must be on the public internet: its keys are fetched from there",
  ],
  [
    "an issuer of 256 characters",
    { issuer: `https://issuer.example/${"a".repeat(233)}` },
    "issuer",
    "must be at most 255 characters",
  ],
  ["no subject", { subject: undefined }, "subject", "is required"],
  ["an empty subject", { subject: "" }, "subject", "must be 1 to 255 characters long"],
  ["a subject of spaces", { subject: "  " }, "subject", TEXT],
  ["a bare *", { subject: "*" }, "subject", "must name a subject; * would match every token of the issuer"],
  ["two *", { subject: "repo:octo-org/**" }, "subject", "must have a * at the end only"],
  ["a * in the middle", { subject: "repo:*/octo-repo" }, "subject", "must have a * at the end only"],
  ["a * at the beginning", { subject: "*:main" }, "subject", "must have a * at the end only"],
  ["a subject with a NUL", { subject: "repo:a\0" }, "subject", TEXT],
  [
    "every repository on GitHub",
    { subject: "repo:*" },
    "subject",
    "must name the owner, as in repo:OWNER/*: every user of the platform shares this issuer",
  ],
  [
    "owners on GitHub with one prefix",
    { subject: "repo:octo*" },
    "subject",
    "must name the owner, as in repo:OWNER/*: every user of the platform shares this issuer",
  ],
  [
    "an environment of any repository on GitHub",
    { subject: "environment:production" },
    "subject",
    "must name the owner, as in repo:OWNER/*: every user of the platform shares this issuer",
  ],
  [
    "a reusable workflow on GitHub, which others may call",
    { subject: "job_workflow_ref:octo-org/octo-repo/.github/workflows/link.yml@refs/heads/main" },
    "subject",
    "must name the owner, as in repo:OWNER/*: every user of the platform shares this issuer",
  ],
  [
    "every project on GitLab",
    { issuer: "https://gitlab.com", subject: "project_path:*" },
    "subject",
    "must name the owner, as in project_path:GROUP/*: every user of the platform shares this issuer",
  ],
  ...["https://app.terraform.io", "https://app.eu.terraform.io"].map((issuer): (typeof INVALID)[number] => [
    `every organization at ${issuer}`,
    { issuer, subject: "organization:*" },
    "subject",
    "must name the owner, as in organization:ORGANIZATION:*: every user of the platform shares this issuer",
  ]),
  [
    "organizations on Buildkite with one prefix",
    { issuer: "https://agent.buildkite.com", subject: "organization:acme*" },
    "subject",
    "must name the owner, as in organization:ORGANIZATION:*: every user of the platform shares this issuer",
  ],
  [
    "every team on Vercel",
    { issuer: "https://oidc.vercel.com", subject: "owner:*" },
    "subject",
    "must name the owner, as in owner:TEAM:*: every user of the platform shares this issuer",
  ],
  [
    "several Google accounts",
    { issuer: "https://accounts.google.com", subject: "1*" },
    "subject",
    "must name the owner, as in 102345678901234567890: every user of the platform shares this issuer",
  ],
  ...["common/v2.0", "organizations/v2.0", "consumers/v2.0", "common/"].map(
    (path): (typeof INVALID)[number] => [
      `Microsoft's ${path}`,
      { issuer: `https://login.microsoftonline.com/${path}`, subject: "a-workload" },
      "issuer",
      "must have the ID of your tenant: tokens name it, and never this address",
    ],
  ),
  ["an empty audience", { audience: "" }, "audience", "must be 1 to 255 characters long"],
  ["an audience that is a list", { audience: ["https://links.example"] }, "audience", "must be a string"],
  ["no scopes", { scopes: undefined }, "scopes", "is required"],
  ["an empty list of scopes", { scopes: [] }, "scopes", SCOPE_LIST],
  ["scopes in one text", { scopes: "links:write" }, "scopes", SCOPE_LIST],
  ["an unknown scope", { scopes: ["links:write", "admin"] }, "scopes.1", SCOPE_LIST],
  ["a scope that isn't of the API", { scopes: ["openid"] }, "scopes.0", SCOPE_LIST],
  ["claims that are a list", { claims: ["a=b"] }, "claims", "must be an object"],
  [
    "a claim that is a number",
    { claims: { repository_owner_id: 65 } },
    "claims.repository_owner_id",
    "must be a string",
  ],
  ["an empty claim", { claims: { ref: "" } }, "claims.ref", "must have a value of 1 to 255 characters"],
  [
    "a claim with a line break",
    { claims: { ref: "a\nb" } },
    "claims.ref",
    "must have a value of 1 to 255 characters",
  ],
  [
    "a claim without a name",
    { claims: { "": "value" } },
    "claims.",
    "must have a name of 1 to 100 characters",
  ],
  [
    "a claim that has a field",
    { claims: { aud: "x" } },
    "claims.aud",
    "must be a claim other than iss, sub, aud, exp, nbf, iat and jti",
  ],
  [
    "11 claims",
    { claims: Object.fromEntries(Array.from({ length: 11 }, (_, index) => [`c${index}`, "x"])) },
    "claims",
    "must have at most 10 claims",
  ],
  ["an unknown field", { subjects: ["a"] }, "subjects", "is not a known field"],
];

for (const [what, changes, field, message] of INVALID) {
  test(`a rule with ${what} is rejected`, (t) => {
    const problem = t.throws(() => validate({ ...RULE, ...changes })) as unknown as Problem;
    t.is(problem.status, 422);
    t.deepEqual(problem.errors, [{ field, message }]);
  });
}

for (const issuer of ["http://localhost:8080", "https://localhost", "http://127.0.0.1", "https://[::1]"]) {
  test(`in production, the issuer ${issuer} is rejected`, (t) => {
    t.notThrows(() => validate({ ...RULE, issuer }));
    t.throws(() => inProduction({ ...RULE, issuer }), { message: /^issuer must be / });
  });
}

test("an issuer on a private host that the operator allows is accepted with https only", (t) => {
  for (const issuer of ["https://gitlab.internal", "https://gitlab.internal:8443", "https://10.0.0.7:8443"]) {
    t.is(withAllowedHosts({ ...RULE, issuer }).issuer, issuer);
  }
  for (const issuer of ["http://gitlab.internal", "https://10.0.0.7"]) {
    t.throws(() => withAllowedHosts({ ...RULE, issuer }), { message: /^issuer must / }, issuer);
  }
});

test("all invalid fields are named in one answer", (t) => {
  const problem = t.throws(() => validate({ subject: "*", issuer: "x" })) as unknown as Problem;
  t.deepEqual(problem.errors?.map(({ field }) => field).sort(), ["issuer", "name", "scopes", "subject"]);
});
