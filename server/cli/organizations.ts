import type { Storage } from "../../adapters/index.ts";
import { OPERATOR } from "../../resources/events.ts";
import { isPlan, PLANS, type Plan } from "../../resources/plans.ts";
import { showClient, showPlanChange } from "../client-view.ts";
import { type Command, CommandError } from "./command.ts";

const NAME_MAX = 100;

/** `org …` */
export const organizationCommands: Command[] = [
  {
    usage: "org create <name> [--plan free|growth|premium]",
    summary: "makes an organization, and its client on a paid plan",
    options: { plan: { type: "string" } },
    arguments: { least: 1, most: 1 },
    migrates: true,
    async run({ args, options, storage }) {
      const name = (args[0] as string).trim();
      if (name.length < 1 || name.length > NAME_MAX) {
        throw new CommandError("invalid_name", `name must have 1 to ${NAME_MAX} characters`);
      }
      return showPlanChange(
        await storage.organizations.create(name, readPlan(options.plan ?? "free"), OPERATOR),
      );
    },
  },
  {
    usage: "org plan <org-id> <plan>",
    summary: "changes the plan; the first paid one makes the client",
    arguments: { least: 2, most: 2 },
    migrates: true,
    async run({ args: [id, plan], storage }) {
      const changed = await storage.organizations.setPlan(id as string, readPlan(plan), OPERATOR);
      if (!changed) throw noOrganization(id);
      return showPlanChange(changed);
    },
  },
  {
    usage: "org list",
    summary: "lists the organizations",
    arguments: { least: 0, most: 0 },
    migrates: true,
    run: async ({ storage }) => ({ organizations: await storage.organizations.list() }),
  },
  {
    usage: "org show <org-id>",
    summary: "shows an organization with its client",
    arguments: { least: 1, most: 1 },
    migrates: true,
    async run({ args: [id], storage }) {
      const organization = await findOrganization(storage, id);
      const client = await storage.clients.ofOrganization(organization.id);
      return { organization, ...(client && { client: showClient(client) }) };
    },
  },
];

/** @throws CommandError `not_found` */
export async function findOrganization(storage: Storage, id: string | undefined) {
  const organization = await storage.organizations.find(id ?? "");
  if (!organization) throw noOrganization(id);
  return organization;
}

function noOrganization(id: string | undefined): CommandError {
  return new CommandError("not_found", `there is no organization ${id}`);
}

function readPlan(word: unknown): Plan {
  if (isPlan(word)) return word;
  throw new CommandError("invalid_plan", `plan must be one of ${PLANS.join(", ")}`);
}
