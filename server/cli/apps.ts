import type { MemberApps } from "../../adapters/oauth/client-policy.ts";
import { MAX_APPROVED_APPS } from "../../adapters/organizations/approved-apps.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import { describeApproval, showApproval } from "../clients/approval-view.ts";
import { findApp } from "../clients/find-app.ts";
import { type Command, CommandError } from "./command.ts";
import { EXAMPLE_ORG, findOrganization, ORG_ID } from "./organizations.ts";

const MEMBER_APPS: readonly string[] = ["any", "approved", "none"] satisfies MemberApps[];
const EXAMPLE_CLIENT = "lgc_Zr3vYb0aQn5fTtK1pWxLmA";

/** `org member-apps`, `app …` */
export const appCommands: Command[] = [
  {
    name: "org member-apps",
    summary: "Choose which apps members may authorize; owners and admins may authorize any",
    arguments: { "<org-id>": ORG_ID, "<any|approved|none>": "apps that are no longer allowed lose access" },
    example: `${EXAMPLE_ORG} approved`,
    needs: "schema",
    async run({ args: [id, word], storage }) {
      const organization = await findOrganization(storage, id);
      if (!MEMBER_APPS.includes(word as string)) {
        throw new CommandError("invalid_member_apps", "The second argument must be any, approved or none.");
      }
      const member_apps = word as MemberApps;
      await storage.appPolicies.set(organization.id, { memberApps: member_apps }, OPERATOR);
      return { organization, member_apps };
    },
  },
  {
    name: "app list",
    summary: "List the apps that an organization has approved for its members",
    arguments: { "<org-id>": ORG_ID },
    example: EXAMPLE_ORG,
    isReadOnly: true,
    needs: "schema",
    async run({ args: [id], storage }) {
      const organization = await findOrganization(storage, id);
      const approved = await storage.approvedApps.list(organization.id);
      return { approved_apps: approved.map((app) => showApproval(describeApproval(app))) };
    },
  },
  {
    name: "app approve",
    summary: "Approve an app for the members of an organization",
    arguments: {
      "<org-id>": ORG_ID,
      "<client-id>": "client ID of an organization, or URL of a metadata document",
    },
    example: `${EXAMPLE_ORG} ${EXAMPLE_CLIENT}`,
    needs: "schema",
    async run({ args: [id, clientId], storage }) {
      const organization = await findOrganization(storage, id);
      // Registered clients are verified with the keys of a server, so they are approved in the dashboard.
      if (!(await findApp(clientId as string, storage.clients))) {
        throw new CommandError("not_found", `App ${clientId} not found.`);
      }
      const approved = await storage.approvedApps.approve(organization.id, clientId as string, OPERATOR);
      if (approved === "missing") throw new CommandError("not_found", `Organization ${id} not found.`);
      if (approved === "limit") {
        const message = `An organization can approve at most ${MAX_APPROVED_APPS} apps. Withdraw an approval to add another app.`;
        throw new CommandError("approved_app_limit", message);
      }
      return { approved_app: showApproval(describeApproval(approved)) };
    },
  },
  {
    name: "app withdraw",
    summary: "Withdraw the approval of an app, which ends its access for members",
    arguments: { "<org-id>": ORG_ID, "<approval-id>": 'ID of the approval, as "app list" prints it' },
    example: `${EXAMPLE_ORG} app_01JD9K2M4N6P8Q0R2S4T6V8W0X`,
    needs: "schema",
    async run({ args: [id, approvalId], storage }) {
      const organization = await findOrganization(storage, id);
      if (!(await storage.approvedApps.remove(organization.id, approvalId as string, OPERATOR))) {
        throw new CommandError("not_found", `Approval ${approvalId} not found.`);
      }
      return { withdrawn: approvalId };
    },
  },
];
