import { z } from "zod";
import { READS } from "../openapi/tool-declaration.ts";
import { organizationSchema, type ShowOrganization } from "../organization/routes.ts";
import type { Services } from "../services.ts";
import type { Tool } from "./tool.ts";
import { linkTools } from "./tools/links.ts";

type ToolOptions = Pick<Services, "links" | "showOrganization"> & { shortUrl: string };

export function createTools({ links, showOrganization, shortUrl }: ToolOptions): Tool[] {
  return [whoami(showOrganization), ...linkTools(links, shortUrl)];
}

/** Requires the scope of `GET /v1/organization`, because it returns the same. */
function whoami(showOrganization: ShowOrganization): Tool {
  return {
    name: "whoami",
    title: "Who am I",
    description:
      "Returns the organization that the token acts for, its plan, limits and usage, and the token's scopes.",
    scopes: ["links:read"],
    input: z.strictObject({}),
    output: z.object({
      organization: organizationSchema,
      client_id: z.string(),
      user_id: z.string().nullable(),
      scopes: z.array(z.string()),
    }),
    annotations: READS,
    run: async ({ organizationId, clientId, userId, scopes }) => ({
      organization: await showOrganization(organizationId),
      client_id: clientId,
      user_id: userId ?? null,
      scopes: [...scopes],
    }),
  };
}
