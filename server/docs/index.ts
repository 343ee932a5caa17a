import type { Middleware } from "koa";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import { respondWithTagged, tagged } from "../../resources/http/etag.ts";
import { PROBLEM_CODES } from "../../resources/http/problem-codes.ts";
import type { Resources } from "../../resources/index.ts";
import { lazy } from "../../resources/lazy.ts";
import { inputSchemaOf } from "../../resources/mcp/tool.ts";
import { codesOf } from "./operation.ts";
import { type DocsContent, docsPage } from "./page.ts";
import { DASHBOARD_FIELDS, DASHBOARD_PROBLEMS } from "./problem-codes.ts";

/** Serves `GET /docs`. The page depends only on the code: it is rendered once, on the first request. */
export function docs(resources: Resources, urls: PublicUrls): Middleware {
  const rendered = lazy(() => {
    const { tools } = resources;
    const document = resources.document();
    const codes = {
      api: PROBLEM_CODES,
      dashboard: DASHBOARD_PROBLEMS,
      fields: fieldsOf({ document, tools }),
    };
    return tagged(docsPage({ document, tools, urls, codes }));
  });
  return async function serveDocs(ctx, next) {
    if (ctx.path !== "/docs") return next();
    respondWithTagged(ctx, rendered(), "html");
  };
}

/** Returns every field that an error code can name: fields of operations, tools and forms. */
function fieldsOf({ document, tools }: Pick<DocsContent, "document" | "tools">): string[] {
  const codes = Object.values(document.paths)
    .flatMap((methods) => Object.values(methods))
    .flatMap(({ responses }) => Object.values(responses).flatMap(codesOf));
  const documented = codes.flatMap((code) => /^invalid_(.+)$/.exec(code)?.[1] ?? []);
  return [
    ...new Set([
      ...documented,
      ...tools.flatMap((tool) => Object.keys(inputSchemaOf(tool).shape)),
      ...DASHBOARD_FIELDS,
    ]),
  ];
}
