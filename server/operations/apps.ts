import { z } from "zod";
import type { ApprovedApp } from "../../adapters/organizations/approved-apps.ts";
import { MANAGERS } from "../../resources/access/scopes.ts";
import { foundIn, notFound, Problem } from "../../resources/http/problem.ts";
import { toJson } from "../../resources/http/to-json.ts";
import { invalidField } from "../../resources/http/validate.ts";
import { describeApp, findApp } from "../clients/app-identity.ts";
import { describeAuthorizedApp } from "../clients/client-view.ts";
import type { Settings } from "../settings/config.ts";
import { type OrganizationRequest, onOrganization } from "./operation.ts";
import { changeSettings, onOff } from "./organization-settings.ts";
import { refusal } from "./problem-codes.ts";
import { appToJson, authorizedAppSchema, deleteWebhooks, timestamp } from "./schemas.ts";

const PATH = "/dashboard/organizations/{id}/apps";

const ALLOWED_CLIENTS = ["known", "any", "none"] as const;
const MEMBER_APPS = ["any", "approved", "none"] as const;
export const NOT_AN_APP = "must be the client ID of an app";
const CHOICES = new Intl.ListFormat("en-GB", { type: "disjunction" }); // without a comma before “or”

export const approvalSchema = z
  .object({
    id: z.string(),
    client_id: z.string(),
    app: z.string().describe("The app's name."),
    published_by: z.string().nullable().describe("The host or organization that publishes it."),
    approved_by: z.string(),
    approved_at: timestamp,
  })
  .meta({ title: "ApprovedApp" });

export function approvalToJson(approved: ApprovedApp) {
  const { name: app, publisher: publishedBy } = describeApp(approved);
  return toJson(approvalSchema, { ...approved, app, publishedBy });
}

/** Returns what an organization may choose on a server: never more than the server itself accepts. */
export function allowedClientsOn({ CIMD, DYNAMIC_REGISTRATION }: Settings) {
  const isOpen = CIMD.accepted === "any" || DYNAMIC_REGISTRATION !== "off";
  return ALLOWED_CLIENTS.filter((choice) => isOpen || choice !== "any");
}

export const listApps = onOrganization({
  at: `GET ${PATH}`,
  summary: "List the apps that members authorized",
  description: "Returns the organization's policy on apps, too.",
  output: z.object({
    allowed_clients: z.enum(ALLOWED_CLIENTS),
    member_apps: z.enum(MEMBER_APPS),
    approved_apps: z.array(approvalSchema),
    enterprise_authorization: z.boolean(),
    data: z.array(
      authorizedAppSchema.extend({
        is_allowed: z.boolean().describe("Whether the policy lets the user's role use the app."),
        user: z.object({ id: z.string(), username: z.string() }).describe("Who authorized it."),
      }),
    ),
  }),
  async run(request) {
    const { policy, approved, apps } = await readApps(request);
    return {
      allowed_clients: policy.allowedClients,
      member_apps: policy.memberApps,
      approved_apps: approved.map(approvalToJson),
      enterprise_authorization: policy.enterpriseAuthorization,
      data: apps.map((app) => ({
        ...appToJson(app),
        is_allowed: app.isAllowed,
        user: { id: app.userId, username: app.username },
      })),
    };
  },
});

/** Reads the authorized apps of an organization, and whether its policy allows each. */
export async function readApps({
  storage,
  appPolicyCheck,
  organization: { id },
}: Pick<OrganizationRequest, "storage" | "appPolicyCheck"> & { organization: { id: string } }) {
  const [authorized, policy, approved] = await Promise.all([
    storage.grants.listByOrganization(id),
    storage.organizationSettings.find(id),
    storage.approvedApps.list(id),
  ]);
  if (!policy) throw notFound("organization");
  const approvedIds = new Set(approved.map(({ clientId }) => clientId));
  const apps = authorized.map((app) => {
    const forApp = { ...policy, isApproved: approvedIds.has(app.clientId) };
    const isAllowed = appPolicyCheck?.(app.clientId, forApp, app.role) ?? false;
    return { ...describeAuthorizedApp(app), isAllowed };
  });
  return { policy, approved, apps };
}

/** What the operations that revoke an app share. Their `run` returns whether it deleted webhooks. */
export const REVOCATION = {
  input: z.strictObject({ delete_webhooks: deleteWebhooks }),
  events: ["authorization.revoked"],
  done: { "app-revoked": "Access revoked.", "app-revoked-webhooks": "Access revoked, and webhooks deleted." },
  outcome: (_: unknown, deletesWebhooks: unknown) =>
    deletesWebhooks ? "app-revoked-webhooks" : "app-revoked",
} as const;

export const revokeApp = onOrganization({
  at: `DELETE ${PATH}/{grant_id}`,
  summary: "Revoke the access of an app",
  description:
    "Its tokens stop working immediately. Members may revoke only what they authorized themselves.",
  ...REVOCATION,
  async run(request) {
    const { storage, organization, actor, member, params, input } = request;
    const { app } = await findApps(request, params.grant_id);
    const deletesWebhooks = input.delete_webhooks && member?.role !== "member";
    if (!(await storage.grants.revoke(organization.id, app.id, actor, { deletesWebhooks })))
      throw notFound("app");
    return deletesWebhooks;
  },
});

/** Returns an authorized app and all others. Throws Problem 403 or 404 if the member may not revoke it. */
export async function findApps(
  {
    storage,
    organization,
    member,
  }: Pick<OrganizationRequest, "storage" | "member"> & { organization: { id: string } },
  grantId: string | undefined,
) {
  const apps = await storage.grants.listByOrganization(organization.id);
  const app = foundIn(apps, grantId, "app");
  if (member?.role === "member" && app.userId !== member.user.id) {
    const detail = "Only owners, admins and the user who authorized the app can revoke its access.";
    throw new Problem(403, "role_required", detail);
  }
  return { app, apps };
}

export const setAppPolicy = onOrganization({
  at: `PUT ${PATH}`,
  summary: "Choose which apps members may authorize",
  roles: MANAGERS,
  description:
    "Owners and admins may authorize any accepted app. Apps that are no longer allowed lose access immediately.",
  input: ({ settings }) => {
    const choices = allowedClientsOn(settings);
    return z
      .strictObject({
        allowed_clients: z
          .enum(choices, { error: `must be ${CHOICES.format(choices)}` })
          .optional()
          .describe("Which apps the organization accepts."),
        member_apps: z
          .enum(MEMBER_APPS, { error: `must be ${CHOICES.format(MEMBER_APPS)}` })
          .optional()
          .describe("Which of them members may authorize. Owners and admins may authorize any."),
      })
      .refine(({ allowed_clients, member_apps }) => (allowed_clients ?? member_apps) !== undefined, {
        error: "must contain allowed_clients or member_apps",
      });
  },
  events: ["organization.allowed_clients_changed", "organization.member_apps_changed"],
  command: {
    name: "org member-apps",
    arguments: {
      member_apps: {
        syntax: `<${MEMBER_APPS.join("|")}>`,
        text: "apps that are no longer allowed lose access",
      },
    },
    example: "approved",
  },
  done: { "app-policy-changed": "Settings saved." },
  async run(request) {
    const { allowed_clients, member_apps } = request.input;
    await changeSettings(request, {
      ...(allowed_clients && { allowedClients: allowed_clients }),
      ...(member_apps && { memberApps: member_apps }),
    });
  },
});

export const setEnterpriseAuthorization = onOrganization({
  ...onOff("enabled", {
    "enterprise-on": "Enterprise-managed authorization is on.",
    "enterprise-off": "Enterprise-managed authorization is off.",
  }),
  at: `PUT ${PATH}/enterprise-authorization`,
  summary: "Let the identity provider authorize apps",
  description:
    "The identity provider then authorizes apps for the organization's members, without asking them.",
  refuses: ["no_identity_provider"],
  events: ["enterprise_authorization.changed"],
  command: {
    name: "org enterprise-authorization",
    arguments: { enabled: "on accepts the identity provider's assertions about members" },
    example: "on",
  },
  async run(request) {
    const { settings, member, input } = request;
    if (member && !settings.IDP_ISSUER) throw refusal("no_identity_provider");
    await changeSettings(request, { enterpriseAuthorization: input.enabled });
  },
});

/** Throws Problem 422. Registered clients are verified with the keys of a server, so the operator can't name them. */
async function appOf(
  { storage, registeredClientIds }: Pick<OrganizationRequest, "storage" | "registeredClientIds">,
  clientId: string,
) {
  const app = await findApp(clientId, storage.clients, registeredClientIds);
  if (!app) throw invalidField("client_id", NOT_AN_APP);
  return app;
}

export const listApprovedApps = onOrganization({
  at: `GET ${PATH}/approved`,
  summary: "List the approved apps of an organization",
  roles: MANAGERS,
  output: z.object({ data: z.array(approvalSchema) }),
  command: {
    name: "app list",
    result: ({ output }) => ({ approved_apps: (output as { data: object[] }).data }),
  },
  async run({ storage, organization }) {
    const approved = await storage.approvedApps.list(organization.id);
    return { data: approved.map(approvalToJson) };
  },
});

export const approveApp = onOrganization({
  at: `POST ${PATH}/approved`,
  summary: "Approve an app for the members",
  roles: MANAGERS,
  input: z.strictObject({
    client_id: z
      .string({ error: NOT_AN_APP })
      .describe("The client ID of an organization, or the URL of a metadata document."),
  }),
  output: z.object({ approved_app: approvalSchema }),
  status: 201,
  refuses: ["approved_app_limit"],
  events: ["app.approved"],
  command: {
    name: "app approve",
    arguments: { client_id: "client ID of an organization, or URL of a metadata document" },
    example: "lgc_Zr3vYb0aQn5fTtK1pWxLmA",
  },
  done: { "app-approved": "App approved." },
  async run(request) {
    const { storage, organization, actor, input } = request;
    await appOf(request, input.client_id);
    const approved = await storage.approvedApps.approve(organization.id, input.client_id, actor);
    if (approved === "missing") throw notFound("organization");
    if (approved === "limit") throw refusal("approved_app_limit");
    return { approved_app: approvalToJson(approved) };
  },
});

export const withdrawApproval = onOrganization({
  at: `DELETE ${PATH}/approved/{approval_id}`,
  summary: "Withdraw the approval of an app",
  roles: MANAGERS,
  description: "The app loses its access for members.",
  events: ["app.approval_withdrawn"],
  command: {
    name: "app withdraw",
    arguments: { approval_id: 'ID of the approval, as "app list" prints it' },
    example: "app_01JD9K2M4N6P8Q0R2S4T6V8W0X",
    result: ({ params }) => ({ withdrawn: params.approval_id }),
  },
  done: { "approval-withdrawn": "Approval withdrawn." },
  async run({ storage, organization, actor, params }) {
    if (!(await storage.approvedApps.remove(organization.id, params.approval_id, actor)))
      throw notFound("approval");
  },
});
