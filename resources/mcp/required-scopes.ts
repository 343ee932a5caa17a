import type { ApiScope } from "../access/scopes.ts";
import type { Offer } from "./offer.ts";

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
