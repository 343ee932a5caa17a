import type { Context } from "koa";
import type { Precondition } from "./links.ts";

/** The entity tag of a version of a link. */
export function entityTag(version: number): string {
  return `"${version}"`;
}

/**
 * RFC 9110 §13.1.2: whether `If-None-Match` names this entity tag, or `*`. Not `ctx.fresh`, which gives way to the
 * `Cache-Control: no-cache` that `fetch` adds to conditional requests.
 */
export function isKnown(ctx: Context, current: string): boolean {
  const tags = tagsOf(ctx.get("if-none-match"));
  return tags.some((tag) => tag === "*" || tag.replace(/^W\//, "") === current);
}

function tagsOf(header: string): string[] {
  return header.split(",").map((tag) => tag.trim());
}

/** RFC 9110 §13.1.1: `If-Match` holds for any of the tags it lists, `*` for whatever exists; never for a weak tag. */
export function preconditionOf(ctx: Context, whateverExists?: Precondition): Precondition | undefined {
  const header = ctx.get("if-match").trim();
  if (header === "") return undefined;
  if (header === "*") return whateverExists;
  const tags = tagsOf(header);
  return (version) => tags.includes(entityTag(version));
}
