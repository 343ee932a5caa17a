import { z } from "zod";
import type { Declare } from "./openapi/operation.ts";
import { limitsOf, PLANS } from "./plans.ts";
import type { LinkStore, OrganizationReader } from "./ports.ts";
import { notFound } from "./problem.ts";
import type { WebhookStore } from "./webhooks/ports.ts";

/** An organization as the API shows it. */
export const organizationSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    plan: z.enum(PLANS),
    limits: z.object({
      requests_per_minute: z.int().describe("Calls of the API and MCP together."),
      links_per_bulk: z.int().describe("Links in one bulk call."),
      webhooks: z.int().describe("Webhooks that may exist at a time."),
    }),
    usage: z.object({
      links: z.int().describe("Links that exist."),
      webhooks: z.int().describe("Webhooks that exist."),
    }),
  })
  .meta({
    title: "Organization",
    examples: [
      {
        id: "org_01JAV4T9Q5YQ8Z6K3W2N7R1XCE",
        name: "Acme",
        plan: "growth",
        limits: { requests_per_minute: 600, links_per_bulk: 100, webhooks: 20 },
        usage: { links: 42, webhooks: 3 },
      },
    ],
  });

export type OrganizationView = z.output<typeof organizationSchema>;

/** Shows an organization with what its plan allows and what it uses. */
export type ShowOrganization = (organizationId: string) => Promise<OrganizationView>;

/** @throws Problem 404 when the organization has just gone */
export function createShowOrganization(
  organizations: OrganizationReader,
  links: Pick<LinkStore, "count">,
  webhooks: Pick<WebhookStore, "count">,
): ShowOrganization {
  return async (organizationId) => {
    const organization = await organizations.find(organizationId);
    if (!organization) throw notFound("organization");
    const counts = await Promise.all([links.count(organizationId), webhooks.count(organizationId)]);
    return {
      ...organization,
      limits: limitsOf(organization.plan),
      usage: { links: counts[0], webhooks: counts[1] },
    };
  };
}

/** Declares `GET /v1/organization`. */
export function organizationRoutes(declare: Declare, show: ShowOrganization): void {
  declare({
    id: "getOrganization",
    method: "get",
    path: "/v1/organization",
    tag: "Organization",
    summary: "Show your organization",
    description: "The organization that the token acts for, with what its plan allows and what it uses.",
    scopes: ["links:read"],
    answers: { 200: { description: "The organization.", body: organizationSchema } },
    async handler(ctx) {
      ctx.body = await show(ctx.state.caller.organizationId);
    },
  });
}
