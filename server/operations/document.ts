import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import type { RequestHeader, ResponseHeader } from "../../resources/http/headers.ts";
import { problemSchema } from "../../resources/http/problem.ts";
import { PROBLEM_CODES } from "../../resources/http/problem-codes.ts";
import { REPLAYED_ERRORS } from "../../resources/idempotency/run-once.ts";
import { describeSchemas, documentOf, type OpenApiDocument } from "../../resources/openapi/document.ts";
import {
  ALWAYS,
  headerParameters,
  KEY_ERRORS,
  type OperationObject,
  type ResponseObject,
  refToHeaders,
  toErrorResponses,
  validationCodesOf,
  WITH_BODY,
} from "../../resources/openapi/operation-object.ts";
import { sessionCookieOf } from "../http/cookies.ts";
import { VERSION } from "../version.ts";
import { OPERATIONS } from "./index.ts";
import {
  type Environment,
  inputSchemaOf,
  isIdempotent,
  methodOf,
  type Operation,
  pathOf,
  TAGS,
} from "./operation.ts";
import { DASHBOARD_PROBLEMS, type ManagementProblemCode } from "./problem-codes.ts";
import { secondFactorMembers } from "./sign-in.ts";

/** The address of the OpenAPI document of the management API. */
export const DOCUMENT_PATH = "/dashboard/openapi.json";

const CODES = { ...PROBLEM_CODES, ...DASHBOARD_PROBLEMS };
const CHANGES: ManagementProblemCode[] = ["cross_site_request", "invalid_csrf_token", "too_many_requests"];
const IN_ORGANIZATION: ManagementProblemCode[] = [
  "not_found",
  "role_required",
  "organization_suspended",
  "second_factor_setup_required",
  // Of a session that is older than the second factor that the organization requires.
  "reauthentication_required",
];

const HEADERS: Record<number, ResponseHeader[]> = {
  401: ["WWW-Authenticate"],
  403: ["WWW-Authenticate"],
  409: ["Retry-After"],
  429: ["Retry-After"],
  503: ["Retry-After"],
};
const REPLAYED: ResponseHeader[] = ["Idempotency-Replayed"];
const headersOf = (names: ResponseHeader[]) => refToHeaders(names, ["X-Request-Id"]);

const errorSchema = problemSchema
  .extend(secondFactorMembers.partial().shape)
  .meta(problemSchema.meta() ?? {});

const NOT_MODIFIED: ResponseObject = { description: "Not modified.", headers: headersOf(["ETag"]) };

/** Describes the management API by the declarations that serve it. */
export function managementDocument(environment: Pick<Environment, "settings" | "urls">): OpenApiDocument {
  const { urls } = environment;
  const inputOf = (operation: Operation) => inputSchemaOf(operation, environment);
  const { components, refTo } = describeSchemas(
    OPERATIONS.flatMap((operation) => inputOf(operation) ?? []),
    [...OPERATIONS.flatMap(({ output }) => output ?? []), errorSchema],
  );
  const toObject = (operation: Operation): OperationObject => {
    const { id, tag, summary, description, isOpen, output, status = output ? 200 : 204 } = operation;
    const input = inputOf(operation);
    const contentOf = (schema: Parameters<typeof refTo>[0]) => ({
      "application/json": { schema: refTo(schema) },
    });
    const success: ResponseObject = {
      description: output ? "Successful." : "Done.",
      headers: headersOf([
        ...(isReading(operation) ? (["ETag"] as const) : []),
        ...(isIdempotent(operation) ? REPLAYED : []),
      ]),
      ...(output && { content: contentOf(output) }),
    };
    return {
      operationId: id,
      tags: [tag],
      summary,
      ...(description && { description }),
      security: isOpen ? [] : [{ token: [] }, { session: [] }],
      parameters: parametersOf(operation),
      ...(input && { requestBody: { required: true, content: contentOf(input) } }),
      responses: {
        [status]: success,
        ...(isReading(operation) && { 304: NOT_MODIFIED }),
        ...errorsOf(operation, input),
      },
    };
  };
  return documentOf(
    OPERATIONS.map((operation) => ({
      path: pathOf(operation),
      method: methodOf(operation).toLowerCase(),
      object: toObject(operation),
    })),
    {
      title: "linkgate management",
      description: `What members do in the dashboard, for programs: organizations, their members, OAuth clients and apps. Sign-in and examples: ${urls.base}/docs/management`,
      version: VERSION,
      base: urls.base,
      tags: TAGS,
      schemas: components,
      securitySchemes: securitySchemes(urls),
    },
  );
}

function securitySchemes({ base }: PublicUrls) {
  return {
    token: {
      type: "http",
      scheme: "bearer",
      description:
        "A first-party token from `POST /auth/login`. A token of the API doesn't open the dashboard.",
    },
    session: {
      type: "apiKey",
      in: "cookie",
      name: sessionCookieOf({ base }),
      description: "The cookie of a browser that signed in. Changes need the session's CSRF token, too.",
    },
  };
}

function parametersOf(operation: Operation): OperationObject["parameters"] {
  const inPath = [...operation.at.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => ({
    in: "path" as const,
    name,
    required: true,
    description: describeParameter(name),
    schema: { type: "string" as const },
  }));
  const names: RequestHeader[] = [
    ...(isReading(operation) ? (["If-None-Match"] as const) : []),
    ...(isIdempotent(operation) ? (["Idempotency-Key"] as const) : []),
  ];
  return [...inPath, ...headerParameters(names)];
}

function isReading(operation: Operation): boolean {
  return methodOf(operation) === "GET";
}

function describeParameter(name: string): string {
  if (name === "token") return "The end of the link.";
  return `The ID of the ${name === "id" ? "organization" : name.replace(/_id$/, "").replaceAll("_", " ")}.`;
}

function errorsOf(operation: Operation, input: ReturnType<typeof inputSchemaOf>) {
  const { at, isOpen, needsRecentSignIn, refuses = [] } = operation;
  const codes = new Set<ManagementProblemCode>([
    ...ALWAYS,
    ...(isOpen ? [] : (["sign_in_required"] as const)),
    ...(isOpen || isReading(operation) ? [] : CHANGES),
    ...(at.includes("/organizations/{id}") ? IN_ORGANIZATION : []),
    ...(needsRecentSignIn ? (["reauthentication_required"] as const) : []),
    ...(input ? WITH_BODY : []),
    ...(operation.shownOnce ? (["secret_shown_once"] as const) : []),
    ...refuses,
  ]);
  return toErrorResponses(
    [
      ...[...codes].map((code) => ({ code, ...CODES[code] })),
      ...(isIdempotent(operation) ? KEY_ERRORS : []),
      ...validationCodesOf(input),
    ],
    (status) =>
      headersOf([
        ...(HEADERS[status] ?? []),
        ...(isIdempotent(operation) && REPLAYED_ERRORS.has(status) ? REPLAYED : []),
      ]),
  );
}
