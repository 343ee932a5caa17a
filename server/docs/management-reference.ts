import type { OpenApiDocument } from "../../resources/openapi/document.ts";
import type { OperationObject } from "../../resources/openapi/operation-object.ts";
import type { LocatedOperation } from "./examples.ts";
import { fieldsOf, fieldTable, type Schemas, schemaOf } from "./fields.ts";
import type { DocsPage } from "./guides.ts";
import { paragraphs, writePage } from "./markdown-writer.ts";
import { codeLink, codesOf, operationsOf, parameterTable, requestOf } from "./reference.ts";

const PATH = "/docs/management";
// The guide explains these.
const COMMON_CODES = new Set([
  "rate_limited",
  "too_many_requests",
  "internal_error",
  "temporarily_unavailable",
  "sign_in_required",
  "cross_site_request",
  "invalid_csrf_token",
  "invalid_json",
  "body_too_large",
  "unsupported_media_type",
  "organization_suspended",
  "second_factor_setup_required",
  "unknown_field",
  "invalid_request",
  "idempotency_key_in_use",
  "idempotency_key_reused",
]);

/** Returns a page for each subject of the management API, with its operations. */
export function managementPages(document: OpenApiDocument, base: string): DocsPage[] {
  const { schemas } = document.components;
  const subjects = Map.groupBy(operationsOf(document, base), ({ operation }) => operation.tags[0] ?? "");
  return [...subjects].map(([subject, operations]) => {
    const page = {
      path: `${PATH}/${subject.toLowerCase().replaceAll(/\W+/g, "-")}`,
      title: subject,
      description: `operations of the management API: ${subject.toLowerCase()}`,
      section: "Management API",
    };
    return writePage(page, [
      `These operations belong to the [management API](${PATH}.md), which says how to sign in. They are described as [OpenAPI 3.1](/dashboard/openapi.json), too.`,
      ...operations.map((located) => describe(located, schemas)),
    ]);
  });
}

function describe(located: LocatedOperation, schemas: Schemas): string {
  const { summary, description, requestBody, responses } = located.operation;
  const sent = schemaOf(requestBody?.content, schemas);
  const [status, success] = Object.entries(responses).find(([code]) => code.startsWith("2")) ?? [];
  const query = parameterTable(located.operation, "query");
  const fields = fieldsOf(schemaOf(success?.content, schemas) ?? {}, schemas);
  return paragraphs([
    `## ${summary}`,
    requestOf(located),
    description,
    query && `Query parameters:\n\n${query}`,
    sent && `Body:\n\n${fieldTable(fieldsOf(sent, schemas))}`,
    fields.length > 0
      ? `Response ${status}:\n\n${fieldTable(fields, { isResponse: true })}`
      : `Response ${status}: ${success?.description}`,
    `Errors: ${errorsOf(located.operation)}.`,
  ]);
}

function errorsOf({ responses }: OperationObject): string {
  const codes = Object.values(responses)
    .flatMap(codesOf)
    .filter((code) => !COMMON_CODES.has(code));
  return [...new Set(codes)].map(codeLink).join(", ") || "those of every request";
}
