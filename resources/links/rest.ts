import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { Caller, Gate } from "../bearer.ts";
import { json } from "../body.ts";
import type { Link } from "../ports.ts";
import type { Links, Precondition } from "./links.ts";
import { toView } from "./schema.ts";

type RestOptions = { gate: Gate; links: Links; shortUrl: string };

/** The REST face of links: adds its routes to the router of `/v1`. */
export function linkRoutes(router: Router, { gate, links, shortUrl }: RestOptions): void {
  const { bearer } = gate;

  function answer(ctx: Context, link: Link, status = 200) {
    ctx.status = status;
    ctx.set("ETag", entityTag(link.version));
    ctx.body = toView(link, shortUrl);
  }

  router.post("/v1/links", bearer("links:write"), json, async (ctx) => {
    const link = await links.create(callerOf(ctx), ctx.request.body);
    ctx.set("Location", `/v1/links/${link.id}`);
    answer(ctx, link, 201);
  });

  router.get("/v1/links", bearer("links:read"), async (ctx) => {
    const { links: page, nextCursor } = await links.list(callerOf(ctx), { ...ctx.query });
    ctx.body = { data: page.map((link) => toView(link, shortUrl)), next_cursor: nextCursor };
  });

  router.get("/v1/links/:id", bearer("links:read"), async (ctx) => {
    const link = await links.get(callerOf(ctx), ctx.params.id as string);
    answer(ctx, link);
    if (isKnown(ctx, link.version)) ctx.status = 304;
  });

  router.patch("/v1/links/:id", bearer("links:write"), json, async (ctx) => {
    answer(
      ctx,
      await links.update(callerOf(ctx), ctx.params.id as string, ctx.request.body, preconditionOf(ctx)),
    );
  });

  router.delete("/v1/links/:id", bearer("links:write"), async (ctx) => {
    await links.remove(callerOf(ctx), ctx.params.id as string, preconditionOf(ctx));
    ctx.status = 204;
  });
}

function callerOf(ctx: Context): Caller {
  return ctx.state.caller;
}

function entityTag(version: number): string {
  return `"${version}"`;
}

/**
 * RFC 9110 §13.1.2: whether `If-None-Match` names this version, or `*`. Not `ctx.fresh`, which gives way to the
 * `Cache-Control: no-cache` that `fetch` adds to conditional requests.
 */
function isKnown(ctx: Context, version: number): boolean {
  const tags = tagsOf(ctx.get("if-none-match"));
  return tags.some((tag) => tag === "*" || tag.replace(/^W\//, "") === entityTag(version));
}

function tagsOf(header: string): string[] {
  return header.split(",").map((tag) => tag.trim());
}

/** RFC 9110 §13.1.1: `If-Match` holds for any of the tags it lists, `*` for whatever exists; never for a weak tag. */
function preconditionOf(ctx: Context): Precondition | undefined {
  const header = ctx.get("if-match").trim();
  if (header === "" || header === "*") return undefined;
  const tags = tagsOf(header);
  return (version) => tags.includes(entityTag(version));
}
