import { z } from "zod";
import { API_SCOPES, MANAGERS } from "../../resources/access/scopes.ts";
import { notFound } from "../../resources/http/problem.ts";
import { toJson } from "../../resources/http/to-json.ts";
import { ruleContextOf, trustRuleSchema } from "../workload-identity/trust-rules.ts";
import { clientOf } from "./client-common.ts";
import { onOrganization } from "./operation.ts";
import { refusal } from "./problem-codes.ts";
import { timestamp } from "./schemas.ts";

const PATH = "/dashboard/organizations/{id}/workload-identity";

const outputSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    issuer: z.string().describe("The `iss` claim of the tokens."),
    subject: z.string().describe("Their `sub` claim; a `*` at the end matches anything."),
    audience: z.string().describe("Their `aud` claim."),
    claims: z.record(z.string(), z.string()).describe("Further claims that they must have."),
    scopes: z.array(z.string()),
    created_by: z.string(),
    created_at: timestamp,
    last_used_at: timestamp.nullable(),
  })
  .meta({ title: "TrustRule" });

export const listTrustRules = onOrganization({
  at: `GET ${PATH}`,
  summary: "List the trust rules of an organization",
  roles: MANAGERS,
  output: z.object({ data: z.array(outputSchema) }),
  command: {
    name: "trust list",
    result: ({ output }) => ({ trust_rules: (output as { data: object[] }).data }),
  },
  run: async ({ storage, organization }) => ({
    data: (await storage.trustRules.list(organization.id)).map((rule) => toJson(outputSchema, rule)),
  }),
});

export const createTrustRule = onOrganization({
  at: `POST ${PATH}`,
  summary: "Add a trust rule for CI jobs or clusters",
  roles: MANAGERS,
  description: "They then get access with tokens of their platform, without a secret.",
  needsRecentSignIn: true,
  input: ({ settings, urls }) => trustRuleSchema(ruleContextOf(settings, urls)),
  output: outputSchema,
  status: 201,
  refuses: ["no_client", "trust_rule_limit"],
  events: ["trust_rule.created"],
  command: {
    name: "trust add",
    options: {
      name: { syntax: "--name <name>", text: "1 to 100 characters (required)" },
      issuer: { syntax: "--issuer <url>", text: "the iss claim of the tokens (required)" },
      subject: {
        syntax: "--subject <subject>",
        text: "their sub claim; a * at the end matches anything (required)",
      },
      audience: {
        syntax: "--audience <audience>",
        text: "their aud claim (default: the URL of this server)",
      },
      claims: {
        syntax: "--claim <name=value...>",
        text: "another claim that they must have; can be repeated",
        parse: parseClaims,
      },
      scopes: {
        syntax: "--scope <scopes>",
        text: `at most these, separated by spaces: ${API_SCOPES.join(" ")} (required)`,
        parse: ([scopes = ""]) => scopes.split(" ").filter(Boolean),
      },
    },
    example:
      "--name Deploy --issuer https://token.actions.githubusercontent.com --subject repo:octo-org@65/octo-repo@74:ref:refs/heads/main --scope links:write",
    result: ({ output }) => ({ trust_rule: output }),
  },
  done: { "trust-rule-added": "Trust rule added." },
  async run(request) {
    const { storage, organization, actor, member, input } = request;
    // The operator may prepare rules before the organization upgrades.
    if (member) await clientOf(request);
    const created = await storage.trustRules.create(organization.id, input, actor);
    if (created === "missing") throw notFound("organization");
    if (created === "limit") throw refusal("trust_rule_limit");
    return toJson(outputSchema, created);
  },
});

/** `name=value` for each claim. A value may contain further `=`. */
export function parseClaims(pairs: string[]): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const [name = "", ...value] = pair.split("=");
      return [name.trim(), value.join("=").trim()];
    }),
  );
}

export const deleteTrustRule = onOrganization({
  at: `DELETE ${PATH}/{rule_id}`,
  summary: "Remove a trust rule",
  roles: MANAGERS,
  description: "Tokens issued by it expire within 15 minutes.",
  needsRecentSignIn: true,
  events: ["trust_rule.deleted"],
  command: {
    name: "trust remove",
    arguments: { rule_id: 'ID of the trust rule, as "trust list" prints it' },
    example: "trs_01JD9K2M4N6P8Q0R2S4T6V8W0X",
    result: ({ params }) => ({ removed: params.rule_id }),
  },
  done: { "trust-rule-deleted": "Trust rule deleted. Tokens issued by it expire within 15 minutes." },
  async run({ storage, organization, actor, params }) {
    if (!(await storage.trustRules.remove(organization.id, params.rule_id, actor)))
      throw notFound("trust rule");
  },
});
