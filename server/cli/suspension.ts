import { OPERATOR } from "../../resources/events/types.ts";
import { showSuspension } from "../dashboard/membership-view.ts";
import type { Command } from "./command.ts";
import { EXAMPLE_ORG, findOrganization, ORG_ID, organizationNotFound } from "./organizations.ts";
import { reasonOf, reasonOption } from "./reason.ts";

/** `org suspend`, `org resume` and `org delete` */
export const suspensionCommands: Command[] = [
  {
    name: "org suspend",
    summary: "Stop an organization's tokens, apps, links and webhooks; its members can only view it",
    arguments: { "<org-id>": ORG_ID },
    options: reasonOption("its members"),
    example: `${EXAMPLE_ORG} --reason "Phishing links"`,
    needs: "schema",
    async run({ args: [id], options, storage }) {
      const organization = await findOrganization(storage, id);
      const suspension = await storage.suspensions.suspend(organization.id, reasonOf(options), OPERATOR);
      if (!suspension) throw organizationNotFound(id);
      return { organization, suspended: showSuspension(suspension) };
    },
  },
  {
    name: "org resume",
    summary: "Resume a suspended organization, its tokens, apps, links and webhooks",
    arguments: { "<org-id>": ORG_ID },
    example: EXAMPLE_ORG,
    needs: "schema",
    async run({ args: [id], storage }) {
      const organization = await findOrganization(storage, id);
      if (!(await storage.suspensions.resume(organization.id, OPERATOR))) throw organizationNotFound(id);
      return { organization, suspended: null };
    },
  },
  {
    name: "org delete",
    summary: "Delete an organization with its client, webhooks and members; this can't be undone",
    arguments: { "<org-id>": ORG_ID },
    options: reasonOption("the audit log"),
    example: EXAMPLE_ORG,
    needs: "schema",
    async run({ args: [id], options, storage }) {
      const reason = reasonOf(options) ?? undefined;
      const organization = await findOrganization(storage, id);
      if (!(await storage.organizations.remove(organization.id, OPERATOR, reason)))
        throw organizationNotFound(id);
      return { deleted: organization };
    },
  },
];
