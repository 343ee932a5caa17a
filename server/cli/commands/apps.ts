import type { MemberApps } from "../../../adapters/oauth/app-policy.ts";
import { MAX_APPROVED_APPS } from "../../../adapters/organizations/approved-apps.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { findApp } from "../../clients/app-identity.ts";
import { describeApproval, showApproval } from "../../clients/client-view.ts";
import { type Command, CommandError, notFound, organizationCommand } from "../execution/command.ts";

const MEMBER_APPS: readonly string[] = ["any", "approved", "none"] satisfies MemberApps[];

export const appCommands: Command[] = [
  organizationCommand({
    name: "org member-apps",
    summary: "Choose which apps members may authorize",
    description: "Choose which apps members may authorize; owners and admins may authorize any",
    arguments: { "<any|approved|none>": "apps that are no longer allowed lose access" },
    example: "approved",
    async run({ args: [id, word], storage, organization }) {
      if (!MEMBER_APPS.includes(word))
        throw new CommandError("invalid_member_apps", "The second argument must be any, approved or none.");
      await storage.appPolicies.set(id, { memberApps: word as MemberApps }, OPERATOR);
      return { organization, member_apps: word };
    },
  }),
  organizationCommand({
    name: "app list",
    summary: "List the approved apps of an organization",
    isReadOnly: true,
    async run({ args: [id], storage }) {
      const approved = await storage.approvedApps.list(id);
      return { approved_apps: approved.map((app) => showApproval(describeApproval(app))) };
    },
  }),
  organizationCommand({
    name: "app approve",
    summary: "Approve an app for the members",
    arguments: { "<client-id>": "client ID of an organization, or URL of a metadata document" },
    example: "lgc_Zr3vYb0aQn5fTtK1pWxLmA",
    async run({ args: [id, clientId], storage }) {
      // Registered clients are verified with the keys of a server, so they are approved in the dashboard.
      if (!(await findApp(clientId, storage.clients))) throw notFound("App", clientId);
      const approved = await storage.approvedApps.approve(id, clientId, OPERATOR);
      if (approved === "missing") throw notFound("Organization", id);
      if (approved === "limit") {
        const message = `An organization can approve at most ${MAX_APPROVED_APPS} apps. Withdraw an approval to add another app.`;
        throw new CommandError("approved_app_limit", message);
      }
      return { approved_app: showApproval(describeApproval(approved)) };
    },
  }),
  organizationCommand({
    name: "app withdraw",
    summary: "Withdraw the approval of an app",
    description: "Withdraw the approval of an app, which ends its access for members",
    arguments: { "<approval-id>": 'ID of the approval, as "app list" prints it' },
    example: "app_01JD9K2M4N6P8Q0R2S4T6V8W0X",
    async run({ args: [id, approvalId], storage }) {
      if (!(await storage.approvedApps.remove(id, approvalId, OPERATOR)))
        throw notFound("Approval", approvalId);
      return { withdrawn: approvalId };
    },
  }),
];

export const grantCommands: Command[] = [
  {
    name: "grant revoke",
    summary: "Revoke an app's access for one user",
    description: "Revoke an app's access for one user, with all its tokens",
    arguments: {
      "<grant-id>": 'ID of the grant, as the audit log shows it; after "--" if it starts with a hyphen',
    },
    example: "Zr3vYb0aQn5fTtK1Zr3vYb0aQn5fTtK1Zr3vYb0aQn5",
    irreversible: () => "Revoke the app's access and all its tokens?",
    async run({ args: [id], storage }) {
      if (!(await storage.grants.revokeAny(id, OPERATOR))) throw notFound("Grant", id);
      return { revoked: id };
    },
  },
];
