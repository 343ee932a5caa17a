import type { NewTrustRule } from "../../adapters/organizations/trust-rules.ts";

const ORGANIZATION = /^organization:[^:*]+:/;
const TERRAFORM = {
  prefix: ORGANIZATION,
  example: "organization:ORGANIZATION:*",
  claims: [
    "terraform_organization_id",
    "terraform_organization_name",
    "terraform_project_id",
    "terraform_workspace_id",
  ],
};

// Anyone can get tokens of these issuers, so a subject must not match those of others. On GitHub, even a complete subject
// may name no owner: each repository chooses the claims that its subjects consist of, such as `environment:production`.
const SHARED_ISSUERS: Record<string, { prefix: RegExp; example: string; claims: string[] }> = {
  "https://token.actions.githubusercontent.com": {
    prefix: /^repo:[^/*]+\//,
    example: "repo:OWNER/*",
    claims: ["repository", "repository_id", "repository_owner", "repository_owner_id"],
  },
  "https://gitlab.com": {
    prefix: /^project_path:[^/*]+\//,
    example: "project_path:GROUP/*",
    claims: ["project_path", "project_id", "namespace_path", "namespace_id"],
  },
  // https://developer.hashicorp.com/terraform/cloud-docs/workspaces/dynamic-provider-credentials/workload-identity-tokens
  "https://app.terraform.io": TERRAFORM,
  "https://app.eu.terraform.io": TERRAFORM,
  // https://buildkite.com/docs/agent/cli/reference/oidc. Pipelines can choose an ID as their subject.
  "https://agent.buildkite.com": {
    prefix: ORGANIZATION,
    example: "organization:ORGANIZATION:*",
    claims: ["organization_slug", "organization_id", "pipeline_id"],
  },
  // https://vercel.com/docs/oidc/api: the issuer of teams that have not chosen one of their own.
  "https://oidc.vercel.com": {
    prefix: /^owner:[^:*]+:/,
    example: "owner:TEAM:*",
    claims: ["owner", "owner_id", "project_id"],
  },
  // https://developers.google.com/identity/openid-connect/openid-connect: the subject is the number of one account.
  "https://accounts.google.com": {
    prefix: /^\d+$/,
    example: "102345678901234567890",
    claims: ["email", "hd"],
  },
};

type Trusted = Pick<NewTrustRule, "issuer" | "subject" | "claims">;

/** Returns why a rule would accept tokens of strangers; undefined if it wouldn't, or if that can't be known. */
export function findStrangers({ issuer, subject, claims }: Trusted): string | undefined {
  const shared = Object.hasOwn(SHARED_ISSUERS, issuer) ? SHARED_ISSUERS[issuer] : undefined;
  if (!shared || shared.prefix.test(subject)) return undefined;
  if (shared.claims.some((name) => Object.hasOwn(claims, name))) return undefined;
  return `must name the owner, as in ${shared.example}: every user of the platform shares this issuer`;
}
