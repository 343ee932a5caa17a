import { createHash } from "node:crypto";
import type { Middleware } from "koa";
import type { Resources } from "../resources/index.ts";
import { isKnown } from "../resources/links/entity-tag.ts";
import { inputOf } from "../resources/mcp/tool.ts";
import type { Addresses } from "../resources/metadata.ts";
import { PROBLEMS } from "../resources/problems.ts";
import { PEOPLE_FIELDS, PEOPLE_PROBLEMS } from "./problems.ts";
import { codesOf } from "./views/docs/operation.ts";
import { type DocsContent, docsPage } from "./views/docs/page.ts";

const MAX_AGE_S = 300;

/** Serves `GET /docs`: one page, made once, for it changes with the program alone. */
export function docs({ document, tools }: Resources, addresses: Addresses): Middleware {
  const fields = fieldsOf({ document, tools });
  const codes = { api: PROBLEMS, people: PEOPLE_PROBLEMS, fields };
  const page = docsPage({ document, tools, addresses, codes });
  const tag = `"${createHash("sha256").update(page).digest("base64url").slice(0, 22)}"`;
  return function serveDocs(ctx, next) {
    if (ctx.path !== "/docs" || (ctx.method !== "GET" && ctx.method !== "HEAD")) return next();
    ctx.set("Cache-Control", `public, max-age=${MAX_AGE_S}`);
    ctx.set("ETag", tag);
    ctx.type = "html";
    ctx.body = page;
    if (isKnown(ctx, tag)) ctx.status = 304;
  };
}

/** Every field that a refusal may name: in the document, of tools, of forms. */
function fieldsOf({ document, tools }: Pick<DocsContent, "document" | "tools">): string[] {
  const codes = Object.values(document.paths)
    .flatMap((methods) => Object.values(methods))
    .flatMap(({ responses }) => Object.values(responses).flatMap(codesOf));
  const named = codes.flatMap((code) => /^invalid_(.+)$/.exec(code)?.[1] ?? []);
  return [
    ...new Set([...named, ...tools.flatMap((tool) => Object.keys(inputOf(tool).shape)), ...PEOPLE_FIELDS]),
  ];
}
