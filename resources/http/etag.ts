import type { ApiContext } from "./api-context.ts";
import type { Precondition } from "./precondition.ts";

/** Returns the entity tag of a version of a link. */
export function entityTag(version: number): string {
  return `"${version}"`;
}

/**
 * Returns whether `If-None-Match` lists this entity tag, or is `*` (RFC 9110 §13.1.2). Unlike `ctx.fresh`, it ignores the
 * `Cache-Control: no-cache` that `fetch` adds to conditional requests.
 */
export function matchesIfNoneMatch(ctx: ApiContext, current: string): boolean {
  const tags = tagsOf(ctx.get("if-none-match"));
  return tags.some((tag) => tag === "*" || tag.replace(/^W\//, "") === current);
}

function tagsOf(header: string): string[] {
  return header.split(",").map((tag) => tag.trim());
}

/**
 * Returns the precondition in `If-Match` (RFC 9110 §13.1.1), which holds for each tag it lists, but never for a weak one.
 * @param ifExists the precondition for `*`; omit it where a missing resource is a 404 anyway
 */
export function preconditionOf(ctx: ApiContext, ifExists?: Precondition): Precondition | undefined {
  const header = ctx.get("if-match").trim();
  if (header === "") return undefined;
  if (header === "*") return ifExists;
  const tags = tagsOf(header);
  return (version) => tags.includes(entityTag(version));
}
