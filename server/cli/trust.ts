import { MAX_TRUST_RULES } from "../../adapters/organizations/trust-rules.ts";
import { API_SCOPES } from "../../resources/access/scopes.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import { Problem } from "../../resources/http/problem.ts";
import { publicUrlsOf } from "../settings/public-urls.ts";
import { ruleContextOf, trustRuleValidation } from "../workload-identity/schema.ts";
import { showTrustRule } from "../workload-identity/view.ts";
import { type Command, type CommandContext, CommandError } from "./command.ts";
import { EXAMPLE_ORG, findOrganization, ORG_ID } from "./organizations.ts";

const EXAMPLE_RULE =
  "--name Deploy --issuer https://token.actions.githubusercontent.com --subject repo:octo-org@65/octo-repo@74:ref:refs/heads/main --scope links:write";

/** `trust …` */
export const trustCommands: Command[] = [
  {
    name: "trust list",
    summary: "List the trust rules of an organization",
    arguments: { "<org-id>": ORG_ID },
    example: EXAMPLE_ORG,
    isReadOnly: true,
    needs: "schema",
    async run({ args: [id], storage }) {
      const organization = await findOrganization(storage, id);
      return { trust_rules: (await storage.trustRules.list(organization.id)).map(showTrustRule) };
    },
  },
  {
    name: "trust add",
    summary: "Add a trust rule: CI jobs or clusters get access with tokens of their platform",
    arguments: { "<org-id>": ORG_ID },
    options: {
      "--name <name>": "1 to 100 characters (required)",
      "--issuer <url>": "the iss claim of the tokens (required)",
      "--subject <subject>": "their sub claim; a * at the end matches anything (required)",
      "--audience <audience>": "their aud claim (default: the URL of this server)",
      "--claim <name=value...>": "another claim that they must have; can be repeated",
      "--scope <scopes>": `at most these, separated by spaces: ${API_SCOPES.join(" ")} (required)`,
    },
    example: `${EXAMPLE_ORG} ${EXAMPLE_RULE}`,
    needs: "schema",
    async run(context) {
      const { args, storage } = context;
      const organization = await findOrganization(storage, args[0]);
      const created = await storage.trustRules.create(organization.id, parseRule(context), OPERATOR);
      if (created === "limit") {
        throw new CommandError(
          "trust_rule_limit",
          `An organization can have at most ${MAX_TRUST_RULES} trust rules. Remove one to add another.`,
        );
      }
      if (created === "missing") throw new CommandError("not_found", `Organization ${args[0]} not found.`);
      return { trust_rule: showTrustRule(created) };
    },
  },
  {
    name: "trust remove",
    summary: "Remove a trust rule; tokens issued by it expire within 15 minutes",
    arguments: { "<org-id>": ORG_ID, "<rule-id>": 'ID of the trust rule, as "trust list" prints it' },
    example: `${EXAMPLE_ORG} trs_01JD9K2M4N6P8Q0R2S4T6V8W0X`,
    needs: "schema",
    async run({ args: [id, ruleId], storage }) {
      const organization = await findOrganization(storage, id);
      if (!(await storage.trustRules.remove(organization.id, ruleId as string, OPERATOR)))
        throw new CommandError("not_found", `Trust rule ${ruleId} not found.`);
      return { removed: ruleId };
    },
  },
];

/** @throws CommandError that names each invalid option */
function parseRule({ options, settings }: CommandContext) {
  const { name, issuer, subject, audience, claim, scope } = options;
  const validateTrustRule = trustRuleValidation(
    ruleContextOf(settings, publicUrlsOf(settings, settings.PORT)),
  );
  try {
    return validateTrustRule({
      name,
      issuer,
      subject,
      ...(audience !== undefined && { audience }),
      claims: parseClaims(claim),
      scopes: scope === undefined ? undefined : String(scope).split(" ").filter(Boolean),
    });
  } catch (error) {
    throw error instanceof Problem ? toCommandError(error) : error;
  }
}

function parseClaims(claim: unknown): Record<string, string> {
  const pairs = [claim ?? []].flat().map((pair) => String(pair).split("="));
  return Object.fromEntries(pairs.map(([name = "", ...value]) => [name, value.join("=")]));
}

function toCommandError({ code, errors = [] }: Problem): CommandError {
  const lines = errors.map(({ field, message }) => `${optionOf(field)} ${message}`);
  return new CommandError(code, lines.join("\n"));
}

/** `claims.ref` → `--claim ref`; `scopes.1` → `--scope` */
function optionOf(field: string): string {
  const [name = "", ...path] = field.split(".");
  if (name === "claims") return `--claim ${path.join(".")}`.trim();
  return name === "scopes" ? "--scope" : `--${name}`;
}
