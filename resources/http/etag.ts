import { hash } from "node:crypto";
import type { Context } from "koa";
import { Problem } from "./problem.ts";

/** Returns whether a change may be applied to a resource that has this entity tag (RFC 9110 §13.1.1). */
export type Precondition = (tag: string) => boolean;

/** RFC 9110 §13.1.2. Unlike `ctx.fresh`, ignores the `Cache-Control: no-cache` that `fetch` adds. */
export function matchesIfNoneMatch(ctx: Context, current: string): boolean {
  const tags = tagsOf(ctx.get("if-none-match"));
  return tags.some((tag) => tag === "*" || tag.replace(/^W\//, "") === current);
}

/** Tags a resource by what its callers can change, as JSON. */
export function contentTag(content: string): string {
  return `"${hash("sha256", content, "base64url").slice(0, 22)}"`;
}

/** Tags a document that depends only on the code. */
export function tagged(text: string) {
  return { text, tag: contentTag(text) };
}

export function respondWithTagged(ctx: Context, { text, tag }: ReturnType<typeof tagged>, type: string) {
  ctx.set("Cache-Control", "public, max-age=300");
  // A compressed response has the same tag.
  ctx.set("ETag", `W/${tag}`);
  ctx.type = type;
  ctx.body = text;
  if (matchesIfNoneMatch(ctx, tag)) ctx.status = 304;
}

function tagsOf(header: string): string[] {
  return header.split(",").map((tag) => tag.trim());
}

/** RFC 9110 §13.1.1: never holds for a weak tag. Omit `ifExists` (for `*`) where a missing resource is a 404. */
export function preconditionOf(ctx: Context, ifExists?: Precondition): Precondition | undefined {
  const header = ctx.get("if-match").trim();
  if (header === "") return undefined;
  if (header === "*") return ifExists;
  const tags = tagsOf(header);
  return (tag) => tags.includes(tag);
}

export function preconditionFailed(kind: string): Problem {
  const detail = `The ${kind} has changed since you last read it. Read it again and retry.`;
  return new Problem(412, "precondition_failed", detail);
}

/** @throws Problem 412 if a change was not applied because its precondition doesn't hold */
export function assertNotStale<T>(result: T | "stale", kind: string): T {
  if (result === "stale") throw preconditionFailed(kind);
  return result;
}
