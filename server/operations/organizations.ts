import { z } from "zod";
import type { Membership, PlanChange } from "../../adapters/organizations/store.ts";
import { MANAGERS, ROLES } from "../../resources/access/scopes.ts";
import { found, notFound, Problem } from "../../resources/http/problem.ts";
import { reservedNamesOf } from "../../resources/links/rules.ts";
import { linkSchemas } from "../../resources/links/schema.ts";
import { createShowOrganization, organizationSchema } from "../../resources/organization/routes.ts";
import { limitsOf, ORGANIZATIONS_PER_USER, PLANS, throwQuotaProblem } from "../../resources/plans.ts";
import { TIME_ZONES } from "../../resources/time-zone.ts";
import { disabledToJson, planChangeToJson } from "../clients/client-view.ts";
import { nameSchema } from "../credentials/names.ts";
import { approvalSchema, approvalToJson } from "./apps.ts";
import { onAccount, onOrganization } from "./operation.ts";
import { changeSettings, onOff } from "./organization-settings.ts";
import { refusal } from "./problem-codes.ts";
import { flag, reasonOption, reasonSchema, timestamp } from "./schemas.ts";

const ORGANIZATION = "/dashboard/organizations/{id}";

const naming = z.strictObject({ name: nameSchema.describe("1 to 100 characters.") });
export const planSchema = z.enum(PLANS, { error: "must be free, growth or premium" });
const shortSchema = z.object({ id: z.string(), name: z.string(), plan: z.enum(PLANS) });
const planChangeSchema = z.object({
  organization: shortSchema,
  client: z
    .object({ client_id: z.string(), client_secret: z.string() })
    .optional()
    .describe("The OAuth client with its secret, if this created it. The secret is shown only once."),
});

export const membershipSchema = shortSchema.extend({
  role: z.enum(ROLES),
  suspended: z
    .object({ at: timestamp, reason: z.string().nullable() })
    .optional()
    .describe("Since when and why the operator suspended the organization. Absent if it isn't suspended."),
});

export function membershipToJson({ id, name, plan, role, suspension }: Membership) {
  return { id, name, plan, role, ...(suspension && { suspended: disabledToJson(suspension) }) };
}

export const listOrganizations = onAccount({
  at: "GET /dashboard",
  summary: "List the organizations of the user",
  output: z.object({ organizations: z.array(membershipSchema) }),
  run: async ({ storage, user }) => ({
    organizations: (await storage.organizations.listByUser(user.id)).map(membershipToJson),
  }),
});

export const createOrganization = onAccount({
  at: "POST /dashboard/organizations",
  summary: "Create an organization",
  description: "It starts on the Free plan, with the user as its owner.",
  input: naming,
  output: planChangeSchema,
  status: 201,
  refuses: ["quota_exceeded"],
  events: ["organization.created"],
  done: { created: "Organization created." },
  async run({ storage, user, input }) {
    const limit = { maxOwned: ORGANIZATIONS_PER_USER };
    const created = await storage.organizations
      .create(input.name, "free", user.actor, user.id, limit)
      .catch(throwQuotaProblem);
    return planChangeToJson(created);
  },
});

export const getOrganization = onOrganization({
  at: `GET ${ORGANIZATION}`,
  summary: "Retrieve an organization",
  description: "Returns it with the limits of its plan and its current usage.",
  output: z.object({ organization: organizationSchema.extend({ role: z.enum(ROLES).optional() }) }),
  async run({ storage, organization, member }) {
    const shown = await createShowOrganization(storage)(organization.id);
    return { organization: { ...shown, ...(member && { role: member.role }) } };
  },
});

export const renameOrganization = onOrganization({
  at: `PATCH ${ORGANIZATION}`,
  summary: "Rename an organization",
  roles: MANAGERS,
  input: naming,
  output: z.object({ organization: shortSchema }),
  events: ["organization.renamed"],
  done: { renamed: "Organization renamed." },
  async run(request) {
    const { id, plan } = request.organization;
    await changeSettings(request, request.input);
    return { organization: { id, plan, ...request.input } };
  },
});

export const deleteOrganization = onOrganization({
  at: `DELETE ${ORGANIZATION}`,
  summary: "Delete an organization",
  description: "Revokes its tokens, removes its members, and stops its short links. This can't be undone.",
  roles: ["owner"],
  needsRecentSignIn: true,
  input: z.strictObject({ reason: reasonSchema.describe("Why, for the audit log.") }),
  events: ["organization.deleted"],
  command: {
    name: "org delete",
    options: { reason: reasonOption("the audit log") },
    question: (_, organization) =>
      `Delete organization ${organization} with its links, members and webhooks?`,
    result: ({ organization }) => ({ deleted: organization }),
  },
  done: { deleted: "Organization deleted." },
  async run({ storage, organization, actor, input }) {
    const reason = input.reason ?? undefined;
    if (!(await storage.organizations.remove(organization.id, actor, reason))) throw notFound("organization");
  },
});

export const getSettings = onOrganization({
  at: `GET ${ORGANIZATION}/settings`,
  summary: "Retrieve the settings of an organization",
  output: z.object({
    name: z.string(),
    fallback_url: z.string().nullable().describe("Where visitors of unavailable links go."),
    time_zone: z.string().describe("The IANA name of the time zone that clicks are counted in."),
    allowed_clients: z.string().describe("Which apps the organization accepts."),
    member_apps: z.string().describe("Which of them members may authorize."),
    approved_apps: z.array(approvalSchema),
    enterprise_authorization: z.boolean(),
    require_second_factor: z.boolean(),
  }),
  async run({ storage, organization: { id, name } }) {
    const settings = found(await storage.organizationSettings.find(id), "organization");
    const approved = await storage.approvedApps.list(id);
    return {
      name,
      fallback_url: settings.fallbackUrl,
      time_zone: settings.timeZone,
      allowed_clients: settings.allowedClients,
      member_apps: settings.memberApps,
      approved_apps: approved.map(approvalToJson),
      enterprise_authorization: settings.enterpriseAuthorization,
      require_second_factor: settings.requiresSecondFactor,
    };
  },
});

export const setFallbackUrl = onOrganization({
  at: `PUT ${ORGANIZATION}/fallback-url`,
  summary: "Set the fallback URL of unavailable links",
  description:
    "Visitors of links that are archived, expired, used up or deleted go there, unless the link has its own.",
  roles: MANAGERS,
  input: ({ urls }) => z.strictObject({ fallback_url: linkSchemas(reservedNamesOf(urls)).fallbackUrl }),
  output: z.object({ fallback_url: z.string().nullable() }),
  events: ["organization.fallback_url_changed"],
  done: { "fallback-url-saved": "Fallback URL saved." },
  async run(request) {
    await changeSettings(request, { fallbackUrl: request.input.fallback_url });
    return request.input;
  },
});

const timeZoning = z.strictObject({
  time_zone: z.enum(TIME_ZONES, { error: "must be the IANA name of a time zone, for example Europe/Berlin" }),
});

export const setTimeZone = onOrganization({
  at: `PUT ${ORGANIZATION}/time-zone`,
  summary: "Set the time zone of the analytics",
  description: "From then on, clicks are counted by its days and hours. Earlier clicks keep theirs.",
  roles: MANAGERS,
  input: timeZoning,
  output: timeZoning,
  events: ["organization.time_zone_changed"],
  done: { "time-zone-saved": "Time zone saved." },
  async run(request) {
    await changeSettings(request, { timeZone: request.input.time_zone });
    return request.input;
  },
});

export const requireSecondFactor = onOrganization({
  ...onOff("require_second_factor", {
    "second-factor-required": "Owners and admins now need two-factor authentication.",
    "second-factor-optional": "Two-factor authentication is no longer required.",
  }),
  at: `PUT ${ORGANIZATION}/members/require-second-factor`,
  summary: "Require two-factor authentication of owners and admins",
  output: z.object({ require_second_factor: flag }),
  description: "Those without one have to set it up before they continue.",
  refuses: ["second_factor_missing"],
  events: ["organization.second_factor_required"],
  command: {
    name: "org require-second-factor",
    arguments: { require_second_factor: "on requires those without a second factor to set one up" },
    example: "on",
  },
  async run(request) {
    const { member, input } = request;
    if (input.require_second_factor && member && member.user.secondFactor !== "proved") {
      const detail = "Set up two-factor authentication for your own account and sign in with it first.";
      throw new Problem(409, "second_factor_missing", detail);
    }
    await changeSettings(request, { requiresSecondFactor: input.require_second_factor });
    return input;
  },
});

export const getPlan = onOrganization({
  at: `GET ${ORGANIZATION}/plan`,
  summary: "Retrieve the plan, and what plans include",
  output: z.object({
    plan: z.enum(PLANS),
    self_service: z.boolean().describe("Whether owners and admins can change it."),
    plans: z.array(z.object({ name: z.enum(PLANS), limits: organizationSchema.shape.limits })),
  }),
  run: async ({ settings, organization }) => ({
    plan: organization.plan,
    self_service: settings.SELF_SERVICE_PLANS,
    plans: PLANS.map((name) => ({ name, limits: limitsOf(name) })),
  }),
});

export const changePlan = onOrganization({
  at: `PUT ${ORGANIZATION}/plan`,
  summary: "Change the plan of an organization",
  description: "The first paid plan creates the OAuth client.",
  roles: MANAGERS,
  input: z.strictObject({ plan: planSchema }),
  output: planChangeSchema,
  refuses: ["self_service_disabled"],
  events: ["plan.changed", "client.created"],
  command: { name: "org plan", arguments: { plan: "the new plan" }, example: "premium" },
  done: { "plan-changed": "Plan changed." },
  async run({ storage, settings, organization, actor, member, input, beforeCommit }) {
    if (member && !settings.SELF_SERVICE_PLANS) throw refusal("self_service_disabled");
    const handOver = async (change: PlanChange) => beforeCommit?.(planChangeToJson(change));
    const changed = await storage.organizations.setPlan(organization.id, input.plan, actor, handOver);
    if (!changed) throw notFound("organization");
    return planChangeToJson(changed);
  },
});
