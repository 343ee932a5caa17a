import { MAX_TRUST_RULES } from "../../../adapters/organizations/trust-rules.ts";
import { API_SCOPES } from "../../../resources/access/scopes.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import {
  type Command,
  type CommandContext,
  CommandError,
  missingOption,
  notFound,
  organizationCommand,
} from "../execution/command.ts";

const RULE_OPTIONS = {
  "--name <name>": "1 to 100 characters (required)",
  "--issuer <url>": "the iss claim of the tokens (required)",
  "--subject <subject>": "their sub claim; a * at the end matches anything (required)",
  "--audience <audience>": "their aud claim (default: the URL of this server)",
  "--claim <name=value...>": "another claim that they must have; can be repeated",
  "--scope <scopes>": `at most these, separated by spaces: ${API_SCOPES.join(" ")} (required)`,
};

export const trustCommands: Command[] = [
  organizationCommand({
    name: "trust list",
    summary: "List the trust rules of an organization",
    isReadOnly: true,
    async run({ args: [id], storage }) {
      const { showTrustRule } = await loadRules();
      return { trust_rules: (await storage.trustRules.list(id)).map(showTrustRule) };
    },
  }),
  organizationCommand({
    name: "trust add",
    summary: "Add a trust rule for CI jobs or clusters",
    description: "Add a trust rule: CI jobs or clusters get access with tokens of their platform",
    options: RULE_OPTIONS,
    example:
      "--name Deploy --issuer https://token.actions.githubusercontent.com --subject repo:octo-org@65/octo-repo@74:ref:refs/heads/main --scope links:write",
    async run(context) {
      const { args, storage } = context;
      const created = await storage.trustRules.create(args[0], await parseRule(context), OPERATOR);
      if (created === "limit") {
        const message = `An organization can have at most ${MAX_TRUST_RULES} trust rules. Remove one to add another.`;
        throw new CommandError("trust_rule_limit", message);
      }
      if (created === "missing") throw notFound("Organization", args[0]);
      const { showTrustRule } = await loadRules();
      return { trust_rule: showTrustRule(created) };
    },
  }),
  organizationCommand({
    name: "trust remove",
    summary: "Remove a trust rule",
    description: "Remove a trust rule; tokens issued by it expire within 15 minutes",
    arguments: { "<rule-id>": 'ID of the trust rule, as "trust list" prints it' },
    example: "trs_01JD9K2M4N6P8Q0R2S4T6V8W0X",
    async run({ args: [id, ruleId], storage }) {
      if (!(await storage.trustRules.remove(id, ruleId, OPERATOR))) throw notFound("Trust rule", ruleId);
      return { removed: ruleId };
    },
  }),
];

const loadRules = () => import("../../workload-identity/trust-rules.ts");

/** Throws a CommandError that names each invalid option. */
async function parseRule({ options, settings, urls }: CommandContext) {
  const { ruleContextOf, trustRuleValidation } = await loadRules();
  const { name, issuer, subject, audience, claim, scope } = options;
  const validateTrustRule = trustRuleValidation(ruleContextOf(settings, urls));
  const pairs = [claim ?? []].flat().map((pair) => String(pair).split("="));
  try {
    return validateTrustRule({
      name,
      issuer,
      subject,
      ...(audience !== undefined && { audience }),
      claims: Object.fromEntries(pairs.map(([claimName = "", ...value]) => [claimName, value.join("=")])),
      scopes: scope === undefined ? undefined : String(scope).split(" ").filter(Boolean),
    });
  } catch (error) {
    const { Problem } = await import("../../../resources/http/problem.ts");
    if (!(error instanceof Problem)) throw error;
    const lines = (error.errors ?? []).map(({ field, message }) => describeError(optionOf(field), message));
    throw new CommandError(error.code, lines.join("\n"));
  }
}

function describeError(option: string, message: string): string {
  const syntax = Object.keys(RULE_OPTIONS).find((known) => known.startsWith(`${option} `));
  return message === "is required" && syntax ? missingOption("", syntax).message : `${option} ${message}`;
}

/** `claims.ref` → `--claim ref`; `scopes.1` → `--scope` */
function optionOf(field: string): string {
  const [name = "", ...path] = field.split(".");
  if (name === "claims") return `--claim ${path.join(".")}`.trim();
  return name === "scopes" ? "--scope" : `--${name}`;
}
