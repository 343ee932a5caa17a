import { z } from "zod";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import { problemSchema } from "../../resources/http/problem.ts";
import { PROBLEM_CODES } from "../../resources/http/problem-codes.ts";
import { describeSchemas, documentOf, type OpenApiDocument } from "../../resources/openapi/document.ts";
import {
  type DescribedOperation,
  type HeaderNames,
  toOperationObject,
} from "../../resources/openapi/operation-object.ts";
import { sessionCookieOf } from "../http/cookies.ts";
import { VERSION } from "../version.ts";
import { type NamedOperation, OPERATIONS, TAGS } from "./index.ts";
import { type Environment, inputSchemaOf, isIdempotent, methodOf, pathOf } from "./operation.ts";
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

const HEADERS: HeaderNames = {
  all: ["X-Request-Id"],
  errors: {
    401: ["WWW-Authenticate"],
    403: ["WWW-Authenticate"],
    429: ["Retry-After"],
    503: ["Retry-After"],
  },
};

const errorSchema = problemSchema
  .extend(secondFactorMembers.partial().shape)
  .meta(problemSchema.meta() ?? {});

/** Describes the management API by the declarations that serve it. */
export function managementDocument(environment: Pick<Environment, "settings" | "urls">): OpenApiDocument {
  const { urls } = environment;
  const operations = OPERATIONS.map((operation) => {
    const name = operation.id.replace(/^./, (first) => first.toUpperCase());
    return {
      ...operation,
      input: titled(inputSchemaOf(operation, environment), `${name}Request`),
      output: titled(operation.output, `${name}Response`),
    };
  });
  const { components, refTo } = describeSchemas(
    operations.flatMap(({ input }) => input ?? []),
    [...operations.flatMap(({ output }) => output ?? []), errorSchema],
  );
  return documentOf(
    operations.map((operation) => ({
      path: pathOf(operation),
      method: methodOf(operation).toLowerCase(),
      object: toOperationObject(describe(operation), refTo, HEADERS),
    })),
    {
      title: "linkgate management",
      description: `What members do in the dashboard, for programs: organizations, their members, OAuth clients, apps and audit logs. Sign-in and examples: ${urls.base}/docs/management`,
      version: VERSION,
      base: urls.base,
      tags: TAGS,
      schemas: components,
      securitySchemes: securitySchemes(urls),
    },
  );
}

/** Names a schema after its operation, unless several have it, which its title then names. */
function titled(schema: z.ZodType | undefined, title: string): z.ZodType | undefined {
  return schema?.meta()?.title ? schema : schema?.meta({ title });
}

type WithoutInput = Omit<NamedOperation, "input">;

function describe(operation: WithoutInput & { input: z.ZodType | undefined }): DescribedOperation {
  const { run, output, csv, status = output || csv ? 200 : 204 } = operation;
  const hasTag = methodOf(operation) === "GET" && !csv;
  const success = {
    description: csv ?? (output ? "Successful." : "Done."),
    ...(output && { body: output }),
    ...(csv && { text: "text/csv" }),
  };
  return {
    ...operation,
    security: run ? [{ token: [] }, { session: [] }] : [],
    params: z.object(Object.fromEntries(parametersOf(operation))),
    body: operation.input,
    isBodyOptional: operation.input?.safeParse({}).success ?? false,
    headers: hasTag ? ["If-None-Match"] : [],
    responses: { [status]: hasTag ? { ...success, headers: ["ETag"] } : success },
    hasKey: isIdempotent(operation),
    errors: [...codesOf(operation)].map((code) => ({ code, ...CODES[code] })),
  };
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

function parametersOf({ at }: WithoutInput): [name: string, schema: z.ZodType][] {
  return Array.from(at.matchAll(/\{(\w+)\}/g), ([, name = ""]) => {
    const subject = name === "id" ? "organization" : name.replace(/_id$/, "").replaceAll("_", " ");
    return [
      name,
      z.string().describe(name === "token" ? "The end of the link." : `The ID of the ${subject}.`),
    ];
  });
}

function codesOf(operation: WithoutInput): Set<ManagementProblemCode> {
  const { at, run, needsRecentSignIn, shownOnce, refuses = [] } = operation;
  return new Set([
    ...(run ? (["sign_in_required"] as const) : []),
    ...(run && methodOf(operation) !== "GET" ? CHANGES : []),
    ...(at.includes("/organizations/{id}") ? IN_ORGANIZATION : []),
    ...(at.includes("_id}") ? (["not_found"] as const) : []),
    ...(needsRecentSignIn ? (["reauthentication_required"] as const) : []),
    ...(shownOnce ? (["secret_shown_once"] as const) : []),
    ...refuses,
  ]);
}
