import type { Router } from "@koa/router";
import { z } from "zod";
import type { Gate } from "./bearer.ts";
import { limitsOf, PLANS } from "./plans.ts";
import type { LinkStore, OrganizationReader } from "./ports.ts";
import { notFound } from "./problem.ts";

/** An organization as the API shows it. */
export const organizationSchema = z.object({
  id: z.string(),
  name: z.string(),
  plan: z.enum(PLANS),
  limits: z.object({ requests_per_minute: z.int(), links_per_bulk: z.int(), webhooks: z.int() }),
  usage: z.object({ links: z.int() }),
});

export type OrganizationView = z.output<typeof organizationSchema>;

/** Shows an organization with what its plan allows and what it uses. */
export type ShowOrganization = (organizationId: string) => Promise<OrganizationView>;

/** @throws Problem 404 when the organization has just gone */
export function createShowOrganization(
  organizations: OrganizationReader,
  links: LinkStore,
): ShowOrganization {
  return async (organizationId) => {
    const organization = await organizations.find(organizationId);
    if (!organization) throw notFound("organization");
    return {
      ...organization,
      limits: limitsOf(organization.plan),
      usage: { links: await links.count(organizationId) },
    };
  };
}

/** Adds `GET /v1/organization`. */
export function organizationRoutes(router: Router, { bearer }: Gate, show: ShowOrganization): void {
  router.get("/v1/organization", bearer("links:read"), async (ctx) => {
    ctx.body = await show(ctx.state.caller.organizationId);
  });
}
