import type { Tokens } from "marked";
import { errorUrl, Problem, toProblemBody } from "../../resources/http/problem.ts";
import { PROBLEM_CODES, type ProblemCodeDescription } from "../../resources/http/problem-codes.ts";
import { lazy } from "../../resources/lazy.ts";
import type { Tool } from "../../resources/mcp/tool.ts";
import type { OpenApiDocument } from "../../resources/openapi/document.ts";
import type { JsonSchema } from "../../resources/openapi/json-schema.ts";
import { DASHBOARD_PROBLEMS } from "../operations/problem-codes.ts";
import type { LocatedOperation } from "./examples.ts";
import { fieldsOf, fieldTable } from "./fields.ts";
import { type DocsPage, pageReader } from "./guides.ts";
import { jsonBlock, tableOf, writePage } from "./markdown-writer.ts";
import { codeLink, codesOf, EXAMPLE_REQUEST_ID, operationLink, operationsOf, SECTION } from "./reference.ts";

/** The address of the list of error codes. The page of a code is below it. */
export const ERRORS = "/docs/errors";

type Codes = Record<string, ProblemCodeDescription>;

const kinds = lazy(
  (): Record<string, Codes> => ({
    "API and MCP": PROBLEM_CODES,
    OAuth: oauthErrors(),
    "Sign-in and dashboard": DASHBOARD_PROBLEMS,
  }),
);

/** Reads the error codes of OAuth and OpenID Connect from their guide. */
function oauthErrors(): Codes {
  const tokens = pageReader("oauth-errors.md")("OAuth errors");
  const table = tokens.find(({ type }) => type === "table") as Tokens.Table;
  return Object.fromEntries(
    table.rows.map((cells) => {
      const [code = "", status, meaning = "", next = ""] = cells.map(({ text }) => text);
      return [withoutMarks(code), { status: Number(status), meaning, next }];
    }),
  );
}

type ErrorContent = {
  base: string;
  document: OpenApiDocument;
  management?: OpenApiDocument | undefined;
  tools: readonly Tool[];
};

/** Returns the list of error codes, and a page for each code. */
export function errorPages({ base, document, management, tools }: ErrorContent): DocsPage[] {
  const operations = operationsOf(document, base);
  const returning = (code: string) => operations.filter((located) => codesIn(located).includes(code));
  const known = new Set(Object.values(kinds()).flatMap(Object.keys));
  const managed = management ? operationsOf(management, base) : [];
  const ofFields = new Set([
    ...[...operations, ...managed].flatMap(codesIn).filter((code) => code.startsWith("invalid_")),
    ...tools.flatMap((tool) => Object.keys(tool.input.shape)).map(codeOfField),
  ]).difference(known);
  return [
    list([...ofFields].sort(), document.components.schemas.Problem ?? {}),
    ...[...known, ...ofFields].map((code) => codePage(code, returning(code), base)),
  ];
}

function codesIn({ operation }: LocatedOperation): string[] {
  return Object.values(operation.responses).flatMap(codesOf);
}

function codeOfField(field: string): string {
  return `invalid_${field}`;
}

function list(ofFields: string[], problem: JsonSchema): DocsPage {
  const tables = Object.entries(kinds()).flatMap(([kind, codes]) => [
    `## ${kind}`,
    tableOf(
      ["Code", "Status", "Meaning"],
      Object.entries(codes).map(([code, { status, meaning }]) => [codeLink(code), String(status), meaning]),
    ),
  ]);
  const page = {
    path: ERRORS,
    title: "Error codes",
    description: "what each error code means, and what to do about it",
    section: SECTION,
  };
  return writePage(page, [
    "Branch on `code`, or on `error` in responses of OAuth. The `type` of an error, and the `error_uri` of OAuth, lead to the page of its code.",
    ...tables,
    "## Fields of an error",
    "Errors of the API, MCP and the dashboard are `application/problem+json` (RFC 9457):",
    fieldTable(fieldsOf(problem), { isResponse: true }),
    "## Invalid fields",
    `If a single field is invalid, the status is 422 and the code names the field: ${ofFields.map(codeLink).join(", ")}.`,
  ]);
}

function codePage(code: string, operations: LocatedOperation[], base: string): DocsPage {
  const known = Object.entries(kinds()).flatMap(([kind, { [code]: found }]) =>
    found ? [{ kind, ...found }] : [],
  );
  const [first = invalidField(code), ...others] = known;
  const detail = withoutMarks(first.meaning);
  const body =
    first.kind === "OAuth"
      ? { error: code, error_description: detail, error_uri: errorUrl(base, code) }
      : toProblemBody(new Problem(first.status, code, detail), base, EXAMPLE_REQUEST_ID);
  return writePage({ path: `${ERRORS}/${code}`, title: code, description: first.meaning }, [
    ...[first, ...others].flatMap(({ kind, status, meaning, next }) => [
      others.length > 0 && `## ${kind}`,
      `**Status ${status}${kind && `, ${kind}`}.** ${meaning}`,
      `**What to do:** ${next}`,
    ]),
    operations.length > 0 &&
      `## Operations\n\nThese operations of the API can return it:\n\n${operations.map((one) => `- ${operationLink(one)}`).join("\n")}`,
    "## Example",
    jsonBlock(body),
    `[All error codes](${ERRORS}.md)`,
  ]);
}

function invalidField(code: string) {
  return {
    kind: "",
    status: 422,
    meaning: `\`${code.slice(codeOfField("").length)}\` is invalid.`,
    next: "Fix the field as `errors` describes, and send the request again.",
  };
}

function withoutMarks(text: string): string {
  return text.replaceAll("`", "");
}
