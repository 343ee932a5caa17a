import type { PlanChange } from "../../../adapters/organizations/store.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { isPlan, PLANS, type Plan } from "../../../resources/plans.ts";
import { showClient, showPlanChange } from "../../clients/client-view.ts";
import { showSuspension } from "../../operations/organizations.ts";
import {
  type Command,
  CommandError,
  eitherOf,
  found,
  nameInQuestion,
  notFound,
  organizationCommand,
  reasonOf,
  reasonOption,
} from "../execution/command.ts";

export const organizationCommands: Command[] = [
  {
    name: "org create",
    summary: "Create an organization",
    description: "Create an organization; on a paid plan, also its OAuth client",
    arguments: { "<name>": "1 to 100 characters" },
    options: { "--plan <plan>": `${eitherOf(PLANS)} (default: free)` },
    example: "Acme --plan growth",
    async run({ args, options, storage, printFirst }) {
      const { normalizeName, validateName } = await import("../../credentials/names.ts");
      const name = normalizeName(args[0]);
      const message = validateName(name);
      if (message) throw new CommandError("invalid_name", `The name ${message}.`);
      const plan = parsePlan(options.plan ?? "free");
      const beforeCommit = (created: PlanChange) => printFirst(showPlanChange(created));
      const created = await storage.organizations.create(name, plan, OPERATOR, undefined, { beforeCommit });
      return showPlanChange(created);
    },
  },
  {
    name: "org list",
    summary: "List the organizations",
    isReadOnly: true,
    run: async ({ storage }) => ({ organizations: await storage.organizations.list() }),
  },
  organizationCommand({
    name: "org show",
    summary: "Show an organization and its OAuth client",
    isReadOnly: true,
    async run({ args: [id], storage, organization }) {
      const [client, suspension] = await Promise.all([
        storage.clients.findByOrganization(id),
        storage.suspensions.find(id),
      ]);
      return {
        organization,
        ...(suspension && { suspended: showSuspension(suspension) }),
        ...(client && { client: showClient(client) }),
      };
    },
  }),
  organizationCommand({
    name: "org suspend",
    summary: "Suspend an organization",
    description: "Stop an organization's tokens, apps, links and webhooks; its members can only view it",
    options: reasonOption("its members"),
    example: '--reason "Phishing links"',
    async run({ args: [id], options, storage, organization }) {
      const suspension = await storage.suspensions.suspend(id, reasonOf(options), OPERATOR);
      return { organization, suspended: showSuspension(found(suspension, "Organization", id)) };
    },
  }),
  organizationCommand({
    name: "org resume",
    summary: "Resume a suspended organization",
    description: "Resume a suspended organization, its tokens, apps, links and webhooks",
    async run({ args: [id], storage, organization }) {
      if (!(await storage.suspensions.resume(id, OPERATOR))) throw notFound("Organization", id);
      return { organization, suspended: null };
    },
  }),
  organizationCommand({
    name: "org delete",
    summary: "Delete an organization",
    description: "Delete an organization with its client, webhooks and members; this can't be undone",
    options: reasonOption("the audit log"),
    irreversible: async (planned) =>
      `Delete organization ${await nameInQuestion(planned)} with its links, members and webhooks?`,
    async run({ args: [id], options, storage, organization }) {
      const reason = reasonOf(options) ?? undefined;
      if (!(await storage.organizations.remove(id, OPERATOR, reason))) throw notFound("Organization", id);
      return { deleted: organization };
    },
  }),
];

function parsePlan(word: unknown): Plan {
  if (isPlan(word)) return word;
  throw new CommandError("invalid_plan", `The plan must be ${eitherOf(PLANS)}.`);
}
