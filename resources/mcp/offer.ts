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

/** The URIs of links as resources. Their completion and their content need the same scopes. */
export const LINK_TEMPLATE = "linkgate://links/{+slug}";
export const LINK_SCOPES: readonly ApiScope[] = ["links:read"];
const LINK_PREFIX = LINK_TEMPLATE.replace("{+slug}", "");

export type Message = { method?: unknown; params?: Params | null } | null | undefined;
type Params = { name?: unknown; uri?: unknown; ref?: { name?: unknown; uri?: unknown } | null };

/** Returns the scopes that a message requires. */
export function requiredScopes(message: Message, { tools, prompts }: Offer): readonly ApiScope[] {
  const { name, uri, ref } = message?.params ?? {};
  switch (message?.method) {
    case "tools/call":
      return named(tools, name);
    case "prompts/get":
      return named(prompts, name);
    case "resources/read":
      return isLink(uri) ? LINK_SCOPES : [];
    case "completion/complete":
      return isLink(ref?.uri) ? LINK_SCOPES : named(prompts, ref?.name);
    default:
      return [];
  }
}

function named(
  all: readonly { name: string; scopes: readonly ApiScope[] }[],
  name: unknown,
): readonly ApiScope[] {
  return all.find((one) => one.name === name)?.scopes ?? [];
}

/** The SDK finds resources by the URL that it parses, whose scheme may be in any case. */
function isLink(uri: unknown): boolean {
  return typeof uri === "string" && (URL.parse(uri)?.href ?? uri).startsWith(LINK_PREFIX);
}
