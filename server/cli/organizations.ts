import type { Storage } from "../../adapters/index.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import { isPlan, PLANS, type Plan } from "../../resources/plans.ts";
import { showClient, showPlanChange } from "../clients/client-view.ts";
import { NAME_MAX, normalizeName, validateName } from "../credentials/names.ts";
import { showSuspension } from "../dashboard/membership-view.ts";
import { type Command, CommandError } from "./command.ts";

/** The description of an `<org-id>` argument. */
export const ORG_ID = 'ID of the organization, as "org list" prints it';
/** An organization ID for examples. */
export const EXAMPLE_ORG = "org_01JD9K2M4N6P8Q0R2S4T6V8W0X";

/** `org …` */
export const organizationCommands: Command[] = [
  {
    name: "org create",
    summary: "Create an organization; on a paid plan, also its OAuth client",
    arguments: { "<name>": `1 to ${NAME_MAX} characters` },
    options: { "--plan <plan>": `${PLANS.join(", ")} (default: free)` },
    example: "Acme --plan growth",
    needs: "schema",
    async run({ args, options, storage }) {
      const name = normalizeName(args[0] as string);
      const message = validateName(name);
      if (message) throw new CommandError("invalid_name", `The name ${message}.`);
      return showPlanChange(
        await storage.organizations.create(name, parsePlan(options.plan ?? "free"), OPERATOR),
      );
    },
  },
  {
    name: "org plan",
    summary: "Change the plan; the first paid plan creates the OAuth client",
    arguments: { "<org-id>": ORG_ID, "<plan>": PLANS.join(", ") },
    example: `${EXAMPLE_ORG} premium`,
    needs: "schema",
    async run({ args: [id, plan], storage }) {
      const changed = await storage.organizations.setPlan(id as string, parsePlan(plan), OPERATOR);
      if (!changed) throw organizationNotFound(id);
      return showPlanChange(changed);
    },
  },
  {
    name: "org require-dpop",
    summary: "Require tokens that are bound to a key (DPoP, RFC 9449), or stop requiring them",
    arguments: { "<org-id>": ORG_ID, "<on|off>": "on rejects bearer tokens, including those already issued" },
    example: `${EXAMPLE_ORG} on`,
    needs: "schema",
    async run({ args: [id, word], storage }) {
      const organization = await findOrganization(storage, id);
      const require_dpop = parseSwitch(word);
      await storage.dpopRequirement.set(organization.id, require_dpop, OPERATOR);
      return { organization, require_dpop };
    },
  },
  {
    name: "org require-second-factor",
    summary: "Require owners and admins to sign in with a second factor, or stop requiring it",
    arguments: { "<org-id>": ORG_ID, "<on|off>": "on requires those without a second factor to set one up" },
    example: `${EXAMPLE_ORG} on`,
    needs: "schema",
    async run({ args: [id, word], storage }) {
      const organization = await findOrganization(storage, id);
      const require_second_factor = parseSwitch(word);
      await storage.secondFactorRequirement.set(organization.id, require_second_factor, OPERATOR);
      return { organization, require_second_factor };
    },
  },
  {
    name: "org enterprise-authorization",
    summary: "Let the identity provider authorize apps for an organization's members, or stop that",
    arguments: {
      "<org-id>": ORG_ID,
      "<on|off>": "on accepts the identity provider's assertions about members",
    },
    example: `${EXAMPLE_ORG} on`,
    needs: "schema",
    async run({ args: [id, word], storage }) {
      const organization = await findOrganization(storage, id);
      const enterprise_authorization = parseSwitch(word);
      await storage.enterpriseAuthorization.set(organization.id, enterprise_authorization, OPERATOR);
      return { organization, enterprise_authorization };
    },
  },
  {
    name: "org list",
    summary: "List the organizations",
    isReadOnly: true,
    needs: "schema",
    run: async ({ storage }) => ({ organizations: await storage.organizations.list() }),
  },
  {
    name: "org show",
    summary: "Show an organization and its OAuth client",
    arguments: { "<org-id>": ORG_ID },
    example: EXAMPLE_ORG,
    isReadOnly: true,
    needs: "schema",
    async run({ args: [id], storage }) {
      const organization = await findOrganization(storage, id);
      const [client, suspension] = await Promise.all([
        storage.clients.findByOrganization(organization.id),
        storage.suspensions.find(organization.id),
      ]);
      return {
        organization,
        ...(suspension && { suspended: showSuspension(suspension) }),
        ...(client && { client: showClient(client) }),
      };
    },
  },
];

/** Returns the organization. @throws CommandError `not_found` */
export async function findOrganization(storage: Storage, id: string | undefined) {
  const organization = await storage.organizations.find(id ?? "");
  if (!organization) throw organizationNotFound(id);
  return organization;
}

/** Returns the error for an unknown organization. */
export function organizationNotFound(id: string | undefined): CommandError {
  return new CommandError("not_found", `Organization ${id} not found.`);
}

function parseSwitch(word: unknown): boolean {
  if (word === "on" || word === "off") return word === "on";
  throw new CommandError("invalid_switch", "The second argument must be on or off.");
}

function parsePlan(word: unknown): Plan {
  if (isPlan(word)) return word;
  throw new CommandError("invalid_plan", `The plan must be ${PLANS.join(", ")}.`);
}
