import { type ApiScope, BASIC_SCOPES, READ_SCOPES } from "../access/scopes.ts";
import { PROMPTS, type Prompt } from "./prompts.ts";
import type { Tool } from "./tool.ts";

const ABOUT =
  "A link is a short URL that redirects to its destination and belongs to the organization that whoami returns.";
const BEFORE_CREATING =
  "Before you create a link, search for an existing one with list_links. If you have your own ID for a link, pass it to \
upsert_link as external_id, which creates the link once and updates it after that. An idempotency_key is unique per call; \
retries reuse it.";
const ANALYTICS =
  "get_link_analytics and get_analytics return clicks by day in the organization's time zone, referrer and country, with known bots counted separately.";

/** What an MCP address offers, within the scopes of a token. */
export type Offer = {
  tools: readonly Tool[];
  prompts: readonly Prompt[];
  instructions: string;
  /** Those that the challenge names. */
  scopes: readonly ApiScope[];
};

export function offerAll(tools: readonly Tool[]): Offer {
  const instructions = [ABOUT, BEFORE_CREATING, ANALYTICS].join(" ");
  return { tools, prompts: PROMPTS, instructions, scopes: BASIC_SCOPES };
}

/** Offers what changes nothing, for hosts that use every tool that they see. */
export function offerReads(tools: readonly Tool[]): Offer {
  return {
    tools: tools.filter(({ annotations }) => annotations.readOnlyHint),
    prompts: PROMPTS.filter(({ scopes }) => scopes.every((scope) => READ_SCOPES.includes(scope))),
    instructions: `${ABOUT} This address changes nothing. ${ANALYTICS}`,
    scopes: READ_SCOPES,
  };
}
