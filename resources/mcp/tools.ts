import { z } from "zod";
import type { Links } from "../links/links.ts";
import { organizationSchema, type ShowOrganization } from "../organization.ts";
import type { Webhooks } from "../webhooks/webhooks.ts";
import { READS, type Tool } from "./tool.ts";
import { linkTools } from "./tools/links.ts";
import { webhookTools } from "./tools/webhooks.ts";

type ToolOptions = {
  links: Links;
  webhooks: Webhooks;
  shortUrl: string;
  showOrganization: ShowOrganization;
};

/** The tools of the MCP endpoint. */
export function createTools({ links, webhooks, shortUrl, showOrganization }: ToolOptions): Tool[] {
  return [whoami(showOrganization), ...linkTools(links, shortUrl), ...webhookTools(webhooks, shortUrl)];
}

function whoami(showOrganization: ShowOrganization): Tool {
  return {
    name: "whoami",
    title: "Who am I",
    description: "Tells which organization the token acts for, its plan and limits, and the token's scopes.",
    scopes: [],
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
