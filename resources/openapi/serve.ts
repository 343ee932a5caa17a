import { createHash } from "node:crypto";
import { z } from "zod";
import { matchesIfNoneMatch } from "../http/etag.ts";
import { lazy } from "../lazy.ts";
import type { OpenApiDocument } from "./document.ts";
import type { Declare } from "./operation.ts";

/** Declares `GET /v1/openapi.json`. The document is built on the first request, because it describes every operation. */
export function serveDocument(declare: Declare, document: () => OpenApiDocument): void {
  const serialized = lazy(() => {
    const text = JSON.stringify(document());
    return { text, tag: `"${createHash("sha256").update(text).digest("base64url").slice(0, 22)}"` };
  });
  declare({
    id: "getDocument",
    method: "get",
    path: "/v1/openapi.json",
    tag: "Documentation",
    summary: "Retrieve the OpenAPI document",
    scopes: "open",
    headers: ["If-None-Match"],
    responses: {
      200: {
        description: "The OpenAPI document.",
        body: z
          .looseObject({ openapi: z.string() })
          .meta({ title: "OpenApiDocument", examples: [{ openapi: "3.1.1" }] }),
        headers: ["ETag"],
      },
      304: { description: "Not modified.", headers: ["ETag"] },
    },
    handler(ctx) {
      const { text, tag } = serialized();
      ctx.set("Access-Control-Allow-Origin", "*");
      ctx.set("Cache-Control", "public, max-age=300");
      // A compressed response has the same tag.
      ctx.set("ETag", `W/${tag}`);
      ctx.type = "json";
      ctx.body = text;
      if (matchesIfNoneMatch(ctx, tag)) ctx.status = 304;
    },
  });
}
