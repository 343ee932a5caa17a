import { createHash } from "node:crypto";
import { z } from "zod";
import { isKnown } from "../links/entity-tag.ts";
import type { OpenApiDocument } from "./document.ts";
import type { Declare } from "./operation.ts";

/** Declares `GET /v1/openapi.json`, which serves the document that it is itself a part of: to be handed over later. */
export function serveDocument(declare: Declare): (document: OpenApiDocument) => void {
  let text = "";
  let tag = "";
  declare({
    id: "getDocument",
    method: "get",
    path: "/v1/openapi.json",
    tag: "Documentation",
    summary: "This document",
    scopes: "open",
    headers: ["If-None-Match"],
    answers: {
      200: {
        description: "The OpenAPI document.",
        body: z
          .looseObject({ openapi: z.string() })
          .meta({ title: "OpenApiDocument", examples: [{ openapi: "3.1.1" }] }),
        headers: ["ETag"],
      },
      304: { description: "It is as the ETag says.", headers: ["ETag"] },
    },
    handler(ctx) {
      ctx.set("Access-Control-Allow-Origin", "*");
      ctx.set("Cache-Control", "public, max-age=300");
      ctx.set("ETag", tag);
      ctx.type = "json";
      ctx.body = text;
      if (isKnown(ctx, tag)) ctx.status = 304;
    },
  });
  return (document) => {
    text = JSON.stringify(document);
    tag = `"${createHash("sha256").update(text).digest("base64url").slice(0, 22)}"`;
  };
}
