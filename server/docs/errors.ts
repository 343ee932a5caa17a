import { errorUrl, Problem, toProblemBody } from "../../resources/http/problem.ts";
import { PROBLEM_CODES, type ProblemCodeDescription } from "../../resources/http/problem-codes.ts";
import type { Tool } from "../../resources/mcp/tool.ts";
import type { OpenApiDocument } from "../../resources/openapi/document.ts";
import type { JsonSchema } from "../../resources/openapi/json-schema.ts";
import { DASHBOARD_FIELDS, DASHBOARD_PROBLEMS } from "../operations/problem-codes.ts";
import { fenced, json, type LocatedOperation } from "./examples.ts";
import { fieldsOf, fieldTable, markdownTable } from "./fields.ts";
import type { DocsPage } from "./guides.ts";
import { OAUTH_ERRORS } from "./oauth-errors.ts";
import { codeLink, codesOf, operationLink, operationsOf } from "./reference.ts";

/** The address of the list of error codes. The page of a code is below it. */
export const ERRORS = "/docs/errors";

const KINDS = {
  "API and MCP": PROBLEM_CODES as Record<string, ProblemCodeDescription>,
  OAuth: OAUTH_ERRORS,
  "Sign-in and dashboard": DASHBOARD_PROBLEMS as Record<string, ProblemCodeDescription>,
};

type ErrorContent = { base: string; document: OpenApiDocument; tools: readonly Tool[] };

/** Returns the list of error codes, and a page for each code. */
export function errorPages({ base, document, tools }: ErrorContent): DocsPage[] {
  const operations = operationsOf(document, base);
  const returning = Map.groupBy(
    operations.flatMap((located) => {
      const codes = Object.values(located.operation.responses).flatMap(codesOf);
      return [...new Set(codes)].map((code) => ({ code, located }));
    }),
    ({ code }) => code,
  );
  const known = new Set(Object.values(KINDS).flatMap((codes) => Object.keys(codes)));
  const fields = fieldCodesOf([...returning.keys()], tools).filter((code) => !known.has(code));
  const pageOf = (code: string) =>
    codePage(
      code,
      (returning.get(code) ?? []).map(({ located }) => located),
      base,
    );
  return [list(fields, document.components.schemas.Problem ?? {}), ...[...known, ...fields].map(pageOf)];
}

/** Returns the codes `invalid_<field>`: of the fields of operations, tools and forms. */
function fieldCodesOf(codes: string[], tools: readonly Tool[]): string[] {
  const fields = [...tools.flatMap((tool) => Object.keys(tool.input.shape)), ...DASHBOARD_FIELDS];
  const documented = codes.filter((code) => code.startsWith("invalid_"));
  return [...new Set([...documented, ...fields.map((field) => `invalid_${field}`)])].sort();
}

function list(fields: string[], problem: JsonSchema): DocsPage {
  const tables = Object.entries(KINDS).map(
    ([kind, codes]) => `## ${kind}

${markdownTable(
  ["Code", "Status", "Meaning"],
  Object.entries(codes).map(([code, { status, meaning }]) => [codeLink(code), String(status), meaning]),
)}`,
  );
  return {
    path: ERRORS,
    title: "Error codes",
    description: "what each error code means, and what to do about it",
    section: "API reference",
    markdown: `# Error codes

Branch on \`code\`, or on \`error\` in responses of OAuth. The \`type\` of an error, and the \`error_uri\` of OAuth, lead to the page of its code.

${tables.join("\n\n")}

## Fields of an error

Errors of the API, MCP and the dashboard are \`application/problem+json\` (RFC 9457):

${fieldTable(fieldsOf(problem), { isResponse: true })}

## Invalid fields

If a single field is invalid, the status is 422 and the code names the field: ${fields.map(codeLink).join(", ")}.
`,
  };
}

function codePage(code: string, operations: LocatedOperation[], base: string): DocsPage {
  const kinds = Object.entries(KINDS).flatMap(([kind, codes]) =>
    codes[code] ? [{ kind, ...codes[code] }] : [],
  );
  const field = code.slice("invalid_".length);
  const descriptions = kinds.length > 0 ? kinds : [{ kind: "", ...invalidField(field) }];
  const parts = descriptions.map(
    ({ kind, status, meaning, next }) =>
      `${descriptions.length > 1 ? `## ${kind}\n\n` : ""}**Status ${status}${kind ? `, ${kind}` : ""}.** ${meaning}\n\n**What to do:** ${next}`,
  );
  const [{ kind, status, meaning }] = descriptions as [(typeof descriptions)[number]];
  return {
    path: `${ERRORS}/${code}`,
    title: code,
    description: meaning,
    markdown: `# ${code}

${parts.join("\n\n")}
${
  operations.length > 0
    ? `\n## Operations\n\nThese operations of the API can return it:\n\n${operations.map((one) => `- ${operationLink(one)}`).join("\n")}\n`
    : ""
}
## Example

${fenced("json", json(kind === "OAuth" ? oauthBody(code, meaning, base) : problemBody({ code, status, meaning }, base)))}

[All error codes](${ERRORS}.md)
`,
  };
}

function invalidField(field: string): ProblemCodeDescription {
  return {
    status: 422,
    meaning: `\`${field}\` is invalid.`,
    next: "Fix the field as `errors` describes, and send the request again.",
  };
}

function oauthBody(code: string, meaning: string, base: string) {
  return { error: code, error_description: plainText(meaning), error_uri: errorUrl(base, code) };
}

function problemBody(
  { code, status, meaning }: { code: string; status: number; meaning: string },
  base: string,
) {
  const problem = new Problem(status, code, plainText(meaning));
  return toProblemBody(problem, base, "0b9d6a3c-7f0e-4f0e-9a55-3c9d1f6a2b10");
}

function plainText(meaning: string): string {
  return meaning.replaceAll("`", "");
}
