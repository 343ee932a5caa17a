import { z } from "zod";
import { API_SCOPES, ROLES, scopesOfRole } from "../access/scopes.ts";
import type { DomainStore } from "../domains/types.ts";
import { found } from "../http/problem.ts";
import type { LinkStore } from "../links/types.ts";
import type { Declare } from "../openapi/operation.ts";
import { limitsOf, limitsSchema, PLANS, type Plan } from "../plans.ts";
import type { WebhookStore } from "../webhooks/types.ts";

const EXAMPLE = {
  id: "org_01JAV4T9Q5YQ8Z6K3W2N7R1XCE",
  name: "Acme",
  plan: "growth" as const,
  fallback_url: null,
  limits: limitsOf("growth"),
  usage: { links: 42, link_bytes: 4_200, domains: 1, webhooks: 3, deliveries_today: 118 },
};

export const organizationSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    plan: z.enum(PLANS),
    fallback_url: z
      .string()
      .nullable()
      .describe("Where visitors of unavailable links without a `fallback_url` go. `null` for nowhere."),
    limits: limitsSchema,
    usage: z.object({
      links: z.int().describe("Current number of links."),
      link_bytes: z.int(),
      domains: z.int(),
      webhooks: z.int().describe("Current number of webhooks."),
      deliveries_today: z.int().describe("Webhook deliveries since 00:00 UTC."),
    }),
  })
  .meta({ title: "Organization", examples: [EXAMPLE] });

/** The organization of a request, with the role of the user whom the token acts for. */
const callerOrganizationSchema = organizationSchema
  .extend({
    role: z
      .enum(ROLES)
      .optional()
      .describe("The user's role in the organization. Absent for tokens without a user."),
    role_scopes: z
      .array(z.enum(API_SCOPES))
      .optional()
      .describe("The scopes that this role allows. The token has those of them that were granted."),
  })
  .meta({
    title: "CallerOrganization",
    examples: [{ ...EXAMPLE, role: "member", role_scopes: scopesOfRole("member") }],
  });

export type OrganizationView = z.output<typeof organizationSchema>;

type OrganizationStores = {
  organizations: OrganizationReader;
  organizationSettings: SettingsReader;
  links: Pick<LinkStore, "usage">;
  domains: Pick<DomainStore, "count">;
  webhooks: Pick<WebhookStore, "count" | "countDeliveriesToday">;
};

/** Returns an organization with its limits and usage. @throws Problem 404 if it was deleted */
export function createShowOrganization(stores: OrganizationStores) {
  const { links, domains, webhooks } = stores;
  return async (organizationId: string): Promise<OrganizationView> => {
    const organization = found(await stores.organizations.find(organizationId), "organization");
    const [own, used, domainCount, webhookCount, deliveries_today] = await Promise.all([
      stores.organizationSettings.find(organizationId),
      links.usage(organizationId),
      domains.count(organizationId),
      webhooks.count(organizationId),
      webhooks.countDeliveriesToday(organizationId),
    ]);
    return {
      ...organization,
      fallback_url: own?.fallbackUrl ?? null,
      limits: limitsOf(organization.plan),
      usage: { ...used, domains: domainCount, webhooks: webhookCount, deliveries_today },
    };
  };
}

export function organizationRoutes(declare: Declare, show: ReturnType<typeof createShowOrganization>): void {
  declare({
    id: "getOrganization",
    at: "GET /v1/organization",
    tag: "Organization",
    summary: "Retrieve your organization",
    description:
      "Returns the organization that the token acts for, its plan's limits and its current usage, and for a user's token the user's role.",
    scopes: ["links:read"],
    responses: { 200: { description: "The organization.", body: callerOrganizationSchema } },
    tool: {
      name: "whoami",
      title: "Who am I",
      description:
        "Returns the organization that the token acts for, its plan, limits and usage, and the token's scopes.",
      output: z.object({
        organization: organizationSchema,
        client_id: z.string(),
        user_id: z.string().nullable(),
        scopes: z.array(z.string()),
      }),
      toResult: ({ body: { role, role_scopes, ...organization } }, { clientId, userId, scopes }) => ({
        organization,
        client_id: clientId,
        user_id: userId ?? null,
        scopes: [...scopes],
      }),
    },
    async run({ organizationId, role }) {
      const organization = await show(organizationId);
      const ofRole = role && { role, role_scopes: scopesOfRole(role) };
      return { status: 200, body: { ...organization, ...ofRole } };
    },
  });
}

export type SettingsReader = {
  find(organizationId: string): Promise<{ fallbackUrl: string | null } | undefined>;
};

/** Reads organizations; the resources need nothing more of them. */
export type OrganizationReader = {
  find(id: string): Promise<{ id: string; name: string; plan: Plan } | undefined>;
};
