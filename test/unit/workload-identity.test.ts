import test from "ava";
import type { Problem } from "../../resources/http/problem.ts";
import { validate as validateWith } from "../../resources/http/validate.ts";
import { findMismatch } from "../../server/provider/workloads.ts";
import { readSettings } from "../../server/settings/config.ts";
import { publicUrlsOf } from "../../server/settings/public-urls.ts";
import { ruleContextOf, trustRuleSchema } from "../../server/workload-identity/trust-rules.ts";
import { PRODUCTION } from "../harness/production.ts";

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
  t.deepEqual(validate(RULE), { ...RULE, audience: "https://links.example", claims: {} } as object);
});

test("scopes are stored once each, in the order of the API", (t) => {
  const scopes = ["webhooks:read", "links:write", "webhooks:read", "links:read"];
  t.deepEqual(validate({ ...RULE, scopes }).scopes, ["links:read", "links:write", "webhooks:read"]);
});

const OWN_ISSUER = "https://issuer.example";
const TERRAFORM = "https://app.terraform.io";
const BUILDKITE = "https://agent.buildkite.com";
const BUILDKITE_ID = { issuer: BUILDKITE, subject: "0184990a", claims: { organization_id: "0184990b" } };
const VALID: [what: string, changes: object][] = [
  ["an issuer with a path", { issuer: "https://oidc.eks.eu-north-1.amazonaws.com/id/0123456789ABCDEF" }],
  ["an issuer with a trailing slash", { issuer: "https://eastus.oic.prod-aks.azure.com/tenant/cluster/" }],
  ["an issuer on loopback with http", { issuer: "http://localhost:8080" }],
  ["a subject with a * at the end", { subject: "repo:octo-org/octo-repo:*" }],
  ["a subject of 255 characters", { issuer: OWN_ISSUER, subject: "s".repeat(255) }],
  ["an owner in a claim only", { subject: "environment:production", claims: { repository_owner_id: "65" } }],
  ["any subject of an owner in a claim", { subject: "repo:*", claims: { repository_owner_id: "65" } }],
  ["any subject prefix of an issuer of its own", { issuer: OWN_ISSUER, subject: "project_path:*" }],
  ["an organization on HCP Terraform", { issuer: TERRAFORM, subject: "organization:acme:project:links:*" }],
  ["an organization on Buildkite", { issuer: BUILDKITE, subject: "organization:acme:pipeline:links:*" }],
  ["an ID as subject on Buildkite, and the organization in a claim", BUILDKITE_ID],
  ["a team on Vercel", { issuer: "https://oidc.vercel.com", subject: "owner:acme:project:links:*" }],
  ["a Google account", { issuer: "https://accounts.google.com", subject: "102345678901234567890" }],
  ["a tenant of Microsoft", { issuer: "https://login.microsoftonline.com/72f988bf/v2.0", subject: "a" }],
  ["a claim with a URL as name", { claims: { "https://example.com/claim": "value" } }],
];

for (const [what, changes] of VALID)
  test(`a rule with ${what} is accepted`, (t) => t.like(validate({ ...RULE, ...changes }), changes));

const SCOPE_LIST =
  "must be a list of one or more of links:read, links:write, domains:read, domains:write, webhooks:read, webhooks:write";
const TEXT = "must be one line without spaces at the beginning and the end";
const EXACT_URL = "must be an https URL, exactly as in the iss claim of the tokens";
const NO_QUERY = "must not contain a query or a fragment";
const PUBLIC = "must be on the public internet: its keys are fetched from there";
const NO_OWNER = (example: string) =>
  `must name the owner, as in ${example}: every user of the platform shares this issuer`;
const GITHUB = NO_OWNER("repo:OWNER/*");
const RESERVED = "must be a claim other than iss, sub, aud, exp, nbf, iat and jti";
const VALUE = "must have a value of 1 to 255 characters";
const ELEVEN_CLAIMS = Object.fromEntries([..."abcdefghijk"].map((name) => [name, "x"]));
const TENANT = "must have the ID of your tenant: tokens name it, and never this address";

type Invalid = [what: string, changes: object, field: string, message: string];
const of = (field: string, rows: [what: string, value: unknown, message: string][]): Invalid[] =>
  rows.map(([what, value, message]) => [what, { [field]: value }, field, message]);
const subjects = (rows: [what: string, issuer: string, subject: string, example: string][]): Invalid[] =>
  rows.map(([what, issuer, subject, example]) => [what, { issuer, subject }, "subject", NO_OWNER(example)]);

const INVALID: Invalid[] = [
  ...of("name", [
    ["no name", undefined, "is required"],
    ["an empty name", "", "must be 1 to 100 characters long"],
    ["a name of 101 characters", "n".repeat(101), "must be 1 to 100 characters long"],
    ["a name with a line break", "a\nb", TEXT],
  ]),
  ...of("issuer", [
    ["no issuer", undefined, "is required"],
    ["an issuer with http", "http://issuer.example", "must be an https URL"],
    ["an issuer with a space", "https://issuer.example/a b", EXACT_URL],
    ["an issuer with a query", "https://issuer.example/?a=b", NO_QUERY],
    ["an issuer with an empty fragment", "https://issuer.example/#", NO_QUERY],
    ["an issuer with a password", "https://a:b@issuer.example", "must not contain a username or password"],
    ["an issuer on another port", "https://issuer.example:8443", "must use port 443"],
    ["an issuer on a private address", "https://10.0.0.1", PUBLIC],
    ["an issuer of 256 characters", `${OWN_ISSUER}/${"a".repeat(233)}`, "must be at most 255 characters"],
    ["Microsoft's common tenant", "https://login.microsoftonline.com/common/v2.0", TENANT],
  ]),
  ...of("subject", [
    ["no subject", undefined, "is required"],
    ["an empty subject", "", "must be 1 to 255 characters long"],
    ["a bare *", "*", "must name a subject; * would match every token of the issuer"],
    ["a * in the middle", "repo:*/octo-repo", "must have a * at the end only"],
    ["a subject with a NUL", "repo:a\0", TEXT],
    ["every repository on GitHub", "repo:*", GITHUB],
    ["owners on GitHub with one prefix", "repo:octo*", GITHUB],
    ["an environment of any repository on GitHub", "environment:production", GITHUB],
    ["a reusable workflow on GitHub, which others may call", "job_workflow_ref:octo-org/octo-repo", GITHUB],
  ]),
  ...subjects([
    ["every project on GitLab", "https://gitlab.com", "project_path:*", "project_path:GROUP/*"],
    ["every organization at HCP", TERRAFORM, "organization:*", "organization:ORGANIZATION:*"],
    ["every team on Vercel", "https://oidc.vercel.com", "owner:*", "owner:TEAM:*"],
    ["several Google accounts", "https://accounts.google.com", "1*", "102345678901234567890"],
  ]),
  ...of("audience", [["an empty audience", "", "must be 1 to 255 characters long"]]),
  ...of("scopes", [
    ["no scopes", undefined, "is required"],
    ["an empty list of scopes", [], SCOPE_LIST],
    ["scopes in one text", "links:write", SCOPE_LIST],
  ]),
  ["a scope that isn't of the API", { scopes: ["openid"] }, "scopes.0", SCOPE_LIST],
  ["claims that are a list", { claims: ["a=b"] }, "claims", "must be an object"],
  ["a claim that is a number", { claims: { ref: 65 } }, "claims.ref", "must be a string"],
  ["an empty claim", { claims: { ref: "" } }, "claims.ref", VALUE],
  ["a line break in a claim", { claims: { a: "\n" } }, "claims.a", VALUE],
  ["a claim without a name", { claims: { "": "a" } }, "claims.", "must have a name of 1 to 100 characters"],
  ["a claim that has a field", { claims: { aud: "x" } }, "claims.aud", RESERVED],
  ["11 claims", { claims: ELEVEN_CLAIMS }, "claims", "must have at most 10 claims"],
  ["an unknown field", { subjects: ["a"] }, "subjects", "is not a known field"],
];

for (const [what, changes, field, message] of INVALID)
  test(`a rule with ${what} is rejected`, (t) => {
    const problem = t.throws(() => validate({ ...RULE, ...changes })) as unknown as Problem;
    t.is(problem.status, 422);
    t.deepEqual(problem.errors, [{ field, message }]);
  });

test("in production, an issuer on loopback is rejected", (t) => {
  for (const issuer of ["http://localhost:8080", "https://localhost", "http://127.0.0.1", "https://[::1]"]) {
    t.notThrows(() => validate({ ...RULE, issuer }));
    t.throws(() => inProduction({ ...RULE, issuer }), { message: /^issuer must be / }, issuer);
  }
});

test("an issuer on a private host that the operator allows is accepted with https only", (t) => {
  for (const issuer of ["https://gitlab.internal", "https://gitlab.internal:8443", "https://10.0.0.7:8443"])
    t.is(withAllowedHosts({ ...RULE, issuer }).issuer, issuer);
  for (const issuer of ["http://gitlab.internal", "https://10.0.0.7"])
    t.throws(() => withAllowedHosts({ ...RULE, issuer }), { message: /^issuer must / }, issuer);
});

test("all invalid fields are named in one answer", (t) => {
  const problem = t.throws(() => validate({ subject: "*", issuer: "x" })) as unknown as Problem;
  t.deepEqual(problem.errors?.map(({ field }) => field).sort(), ["issuer", "name", "scopes", "subject"]);
});

const SUBJECT = "repo:octo-org@65/octo-repo@74:ref:refs/heads/main";
const STORED = { audience: "https://links.example", subject: SUBJECT, claims: { owner_id: "65", run: "1" } };
const CLAIMS = { aud: "https://links.example", sub: SUBJECT, owner_id: "65", run: 1 };

const MATCHES: [what: string, rule: object, claims: object, mismatch: string | undefined][] = [
  ["the same claims, one of them as a number", {}, {}, undefined],
  ["one audience in a list", {}, { aud: [CLAIMS.aud] }, undefined],
  ["another branch", {}, { sub: "repo:octo-org@65/octo-repo@74:ref:refs/heads/feature" }, "sub"],
  ["the subject in another case", {}, { sub: SUBJECT.replace("repo:", "REPO:") }, "sub"],
  ["a * in its subject", {}, { sub: "repo:octo-org@65/octo-repo@74:*" }, "sub"],
  ["an empty subject", { subject: "*" }, { sub: "" }, "sub"],
  ["no subject", {}, { sub: undefined }, "sub"],
  ["a subject that matches a prefix", { subject: "repo:octo-org@65/octo-repo@74:*" }, {}, undefined],
  ["only the prefix", { subject: "repo:octo-org@65/*" }, { sub: "repo:octo-org@65/" }, undefined],
  ["a subject that is shorter", { subject: "repo:octo-org@65/*" }, { sub: "repo:octo-org@65" }, "sub"],
  ["another owner with the prefix", { subject: "repo:octo-org@65/*" }, { sub: "repo:octo-org@651/x" }, "sub"],
  ["another value of a claim", {}, { owner_id: "66" }, "owner_id"],
  ["a list with the value", {}, { owner_id: ["65"] }, "owner_id"],
  ["no such claim", {}, { owner_id: undefined }, "owner_id"],
  ["a claim that every object inherits", { claims: { toString: "x" } }, {}, "toString"],
  ["another audience", {}, { aud: "https://sts.example.com" }, "aud"],
  ["several audiences", {}, { aud: [CLAIMS.aud, "https://sts.example.com"] }, "aud"],
  ["an audience that can't become text", {}, { aud: [CLAIMS.aud, { toString: 1 }] }, "aud"],
];

for (const [what, rule, claims, mismatch] of MATCHES)
  test(`a token with ${what} ${mismatch ? `doesn't match: ${mismatch}` : "matches"}`, (t) =>
    t.is(findMismatch({ ...STORED, ...rule }, { ...CLAIMS, ...claims }), mismatch));
