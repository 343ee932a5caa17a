import type { ExecutionContext } from "ava";
import type { NewTrustRule } from "../../../adapters/organizations/trust-rules.ts";
import { githubClaims, type TokenIssuer } from "../providers/token-issuer.ts";
import { OPERATOR, postForm, type TestOrganization, type TestService } from "../service.ts";
import { type Fields, formOf } from "./authorization-request.ts";
import { withAssertion } from "./client-key.ts";
import { type Answer, read } from "./oauth.ts";

/** The two ways to send the token of a workload to the token endpoint, and how each is refused. */
export const FORMS = {
  grant: {
    status: 400,
    error: "invalid_grant",
    fields: (assertion: string): Fields => ({
      grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer",
      assertion,
    }),
  },
  client_assertion: {
    status: 401,
    error: "invalid_client",
    fields: (assertion: string): Fields => Object.fromEntries(withAssertion(assertion)),
  },
};
export type Form = keyof typeof FORMS;

/** A trust rule, as an owner sends it. */
export const GITHUB_RULE = {
  name: "Deploy",
  issuer: "https://token.actions.githubusercontent.com",
  subject: "repo:octo-org/octo-repo:ref:refs/heads/main",
  claims: { repository_owner_id: "65" },
  scopes: ["links:write"],
} satisfies Partial<NewTrustRule>;

/** Creates an organization that trusts the jobs of `githubClaims` on main, with `changes` applied to the rule. */
export async function createTrustingOrganization(
  service: TestService,
  { issuer }: Pick<TokenIssuer, "issuer">,
  changes: Partial<NewTrustRule> = {},
): Promise<TestOrganization & { ruleId: string }> {
  const organization = await service.createOrganization();
  const ruleId = await addRule(service, organization, { issuer, ...changes });
  return { ...organization, ruleId };
}

export async function addRule(
  service: TestService,
  organization: TestOrganization,
  changes: Partial<NewTrustRule> & { issuer: string },
): Promise<string> {
  const rule: NewTrustRule = {
    name: "Deploy",
    subject: "repo:octo-org@65/octo-repo@74:ref:refs/heads/main",
    audience: service.url,
    claims: { repository_owner_id: "65" },
    scopes: ["links:write"],
    ...changes,
  };
  const created = await service.storage.trustRules.create(organization.id, rule, OPERATOR);
  if (typeof created === "string") throw new Error(`no rule was created: ${created}`);
  return created.id;
}

export function jobToken(
  service: TestService,
  issuer: TokenIssuer,
  claims: Record<string, unknown> = {},
  header: Record<string, unknown> = {},
): Promise<string> {
  return issuer.sign({ ...githubClaims(issuer.issuer, service.url), ...claims }, header);
}

export function exchange(
  service: TestService,
  { clientId }: Pick<TestOrganization, "clientId">,
  form: Form,
  assertion: string,
  fields: Fields = {},
): Promise<Answer> {
  const body = formOf({ client_id: clientId, ...FORMS[form].fields(assertion), ...fields });
  return read(postForm(`${service.url}/oauth/token`, body));
}

/** The description of a token that isn't known to come from an issuer that the client trusts. */
export const UNTRUSTED =
  /no trust rule of the client names its issuer, or its signature can't be verified with the issuer's keys$/;

/** Asserts that the token of a workload was refused, as what it was sent as, with this description. */
export function isRefused(
  t: ExecutionContext,
  form: Form,
  { status, body, headers }: Answer,
  description: RegExp,
): void {
  const { error, ...expected } = FORMS[form];
  t.is(body.error, error, JSON.stringify(body));
  t.is(status, expected.status);
  t.regex(String(body.error_description), description);
  // RFC 6749 §5.2
  t.regex(String(body.error_description), /^[\x20-\x21\x23-\x5b\x5d-\x7e]*$/);
  t.is(headers.get("cache-control"), "no-store");
  t.deepEqual(Object.keys(body).sort(), ["error", "error_description", "error_uri"]);
}
