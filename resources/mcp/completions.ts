import {
  type CompleteRequestParams,
  type CompleteResult,
  ProtocolError,
  ProtocolErrorCode,
} from "@modelcontextprotocol/server";
import type { Caller } from "../access/actor.ts";
import { PROMPTS } from "./prompts.ts";
import { LINK_TEMPLATE } from "./required-scopes.ts";
import { PAGE_TEMPLATE, type ResourceSources } from "./resources.ts";

// MCP, "Completion": a response has at most 100 values.
const VALUES_MAX = 100;

/** Completes slugs, tags and paths of pages. The SDK would state a total, which a bounded search doesn't know. */
export async function complete(
  caller: Caller,
  { links, documentation }: ResourceSources,
  { ref, argument }: CompleteRequestParams,
): Promise<CompleteResult> {
  const { name, value } = argument;
  const values = await suggest();
  return { completion: { values: values.slice(0, VALUES_MAX), hasMore: values.length > VALUES_MAX } };

  function suggest(): Promise<string[]> | string[] {
    switch (`${nameOf(ref)} ${name}`) {
      case `${LINK_TEMPLATE} slug`:
        return links.suggestSlugs(caller, value, VALUES_MAX + 1);
      case `${PAGE_TEMPLATE} path`:
        return documentation
          .pages()
          .map(({ path }) => path.replace("/docs/", ""))
          .filter((path) => path.startsWith(value));
      case "weekly_report tag":
        return links.suggestTags(caller, value, VALUES_MAX + 1);
      default:
        return [];
    }
  }
}

/** Returns the name of a prompt or the template of a resource. @throws ProtocolError if there is none */
function nameOf(ref: CompleteRequestParams["ref"]): string {
  const name = ref.type === "ref/prompt" ? ref.name : ref.uri;
  const known =
    ref.type === "ref/prompt" ? PROMPTS.map((prompt) => prompt.name) : [LINK_TEMPLATE, PAGE_TEMPLATE];
  if (known.includes(name)) return name;
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Nothing named ${name} can be completed.`);
}
