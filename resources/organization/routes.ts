import { z } from "zod";
import { notFound } from "../http/problem.ts";
import type { LinkStore } from "../links/types.ts";
import type { Declare } from "../openapi/operation.ts";
import { limitsOf, PLANS } from "../plans.ts";
import type { WebhookStore } from "../webhooks/types.ts";
import type { OrganizationReader } from "./types.ts";

/** An organization in API responses. */
export const organizationSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    plan: z.enum(PLANS),
    limits: z.object({
      requests_per_minute: z.int().describe("Requests to the REST API and MCP combined, per minute."),
      links_per_bulk: z.int().describe("Links per bulk request."),
      webhooks: z.int().describe("Webhooks per organization."),
    }),
    usage: z.object({
      links: z.int().describe("Current number of links."),
      webhooks: z.int().describe("Current number of webhooks."),
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

/** Returns an organization with the limits of its plan and its current usage. */
export type ShowOrganization = (organizationId: string) => Promise<OrganizationView>;

/** @throws Problem 404 if the organization was deleted since the request was authenticated */
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
    summary: "Retrieve your organization",
    description: "Returns the organization that the token acts for, its plan's limits and its current usage.",
    scopes: ["links:read"],
    responses: { 200: { description: "The organization.", body: organizationSchema } },
    async handler(ctx) {
      ctx.body = await show(ctx.state.caller.organizationId);
    },
  });
}
