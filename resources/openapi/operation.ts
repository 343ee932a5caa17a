import type { Router } from "@koa/router";
import type { Context, Middleware } from "koa";
import { z } from "zod";
import type { AuthenticatedCaller, BearerCheck } from "../access/bearer.ts";
import type { ApiScope } from "../access/scopes.ts";
import { matchesIfNoneMatch, type Precondition, preconditionOf } from "../http/etag.ts";
import type { RequestHeader, ResponseHeader } from "../http/headers.ts";
import { BODY_MAX, isJson, jsonBody, MERGE_PATCH } from "../http/json-body.ts";
import { notFound } from "../http/problem.ts";
import type { ProblemCode } from "../http/problem-codes.ts";
import { invalidField, readQuery } from "../http/validate.ts";
import { type Attempt, type RunOnce, respondOnce, type ServiceResponse } from "../idempotency/run-once.ts";
import { tryTo } from "../try-to.ts";

/** A declared operation, with the two parts of its address. */
export type Operation = Declaration & { method: Lowercase<Method>; path: string; hasKey: boolean };

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

type Declaration = {
  /** The operationId: a verb and a noun, unique. */
  id: string;
  /** The method and the path, in the syntax of OpenAPI: `GET /v1/links/{id}`. */
  at: `${Method} /v1/${string}`;
  tag: "Links" | "Domains" | "Analytics" | "Webhooks" | "Organization" | "Documentation";
  summary: string;
  description?: string;
  /** All required scopes; `open` requires no token. */
  scopes: readonly ApiScope[] | "open";
  params?: z.ZodObject;
  query?: z.ZodObject;
  body?: z.ZodType;
  /** The most bytes of the body; 64 KB by default. */
  bodyLimit?: number;
  headers?: readonly RequestHeader[];
  /** Whether it takes an idempotency key; by default, if it is a POST. */
  hasKey?: boolean;
  responses: Record<number, SuccessResponse>;
  /** Error codes in addition to those that follow from the token, the parameters, the headers and the body. */
  errors?: readonly ProblemCode[];
  /** The MCP tool that runs the operation. */
  tool?: ToolDeclaration;
} & (
  | {
      run(caller: AuthenticatedCaller, request: OperationRequest): Promise<OperationResponse>;
      handler?: never;
    }
  /** Handles what only HTTP has. */
  | { handler: Middleware; run?: never }
);

export type OperationRequest = {
  /** An operation reads those of its own path. */
  params: { id: string; delivery_id: string; external_id: string };
  query: unknown;
  body: unknown;
  precondition?: Precondition | undefined;
  /** Whether the body is a JSON merge patch (RFC 7396). */
  isMergePatch?: boolean;
  /** The most characters of a page of links, if it is shorter than usual. */
  pageLength?: number;
};

/** Only a deletion has no body. */
export type OperationResponse = ServiceResponse | { status: 204; headers?: never; body?: undefined };

export type SuccessResponse = {
  description: string;
  body?: z.ZodType;
  /** The media type of a body that is text. */
  text?: string;
  headers?: readonly ResponseHeader[];
};

type Hint = "readOnlyHint" | "destructiveHint" | "idempotentHint" | "openWorldHint";

/** What a tool has beyond the operation that it belongs to. */
export type ToolDeclaration = {
  name: string;
  /** If the operation's summary says too little. */
  title?: string;
  /** Those that don't follow from the method. */
  annotations?: Partial<Record<Hint, boolean>>;
  /** For a model, if the operation's description says too much for it or too little. */
  description?: string;
  /** The tool that describes the fields: a client holds the schemas of all tools, so they are described once. */
  fieldsAsIn?: string;
  /** The schema of the input, if a model needs to know less of it than the operation accepts. */
  input?: z.ZodObject;
  /** The schema of the result, if another tool describes it or it differs from the response. */
  output?: z.ZodObject;
  /** Returns what a user confirms before the tool deletes something, in clients that can ask. */
  question?(caller: AuthenticatedCaller, path: { id: string }): Promise<string>;
  /** Converts the response, new or replayed, to the result of the tool, if its body isn't the result. */
  toResult?(response: ServiceResponse, caller: AuthenticatedCaller): Record<string, unknown>;
};

/** Returns the schema of a parameter in a path. */
export function pathParameter(description: string, example: string): z.ZodString {
  return z
    .string()
    .describe(description)
    .meta({ examples: [example] });
}

/** Returns the schema of a result, with some fields more, that another tool's output schema describes in full. */
export function sameAs(tool: string, more: z.ZodRawShape = {}): z.ZodObject {
  return z.looseObject(more).describe(`See ${tool}.`);
}

/** Adds an operation to the router and to the document, which therefore always agree. */
export type Declare = (declaration: Declaration) => void;

type DeclareOptions = { bearerCheck: BearerCheck; runOnce: RunOnce };

/** @returns `declare`, and the list of operations declared with it */
export function createDeclare(router: Router, options: DeclareOptions) {
  const operations: Operation[] = [];
  const declare: Declare = (declaration) => {
    const [method = "", path = ""] = declaration.at.split(" ");
    const { hasKey = method === "POST" } = declaration;
    const operation = { ...declaration, method: method.toLowerCase(), path, hasKey } as Operation;
    operations.push(operation);
    router.register(
      operation.path.replaceAll(/\{(\w+)\}/g, ":$1"),
      [operation.method],
      middlewareOf(operation, options),
    );
  };
  return { declare, operations };
}

function middlewareOf(operation: Operation, { bearerCheck, runOnce }: DeclareOptions): Middleware[] {
  const { scopes, query, body, bodyLimit = BODY_MAX } = operation;
  return [
    ...(scopes === "open" ? [] : [bearerCheck.bearer(...scopes)]),
    ...(query ? [readQuery(query)] : []),
    ...(body ? [jsonBody(bodyLimit)] : []),
    operation.handler ?? handlerOf(operation, runOnce),
  ];
}

type RunOperation = Extract<Operation, { run: unknown }>;

function handlerOf({ id, method, run, hasKey, headers = [] }: RunOperation, runOnce: RunOnce): Middleware {
  const isConditional = headers.includes("If-Match");
  // RFC 9110 §13.1.1: `*` requires that the resource exists. Other methods return 404 if it doesn't.
  const ifExists: Precondition | undefined = method === "put" ? () => true : undefined;
  return async function runOperation(ctx) {
    const { caller, query } = ctx.state;
    const request: OperationRequest = {
      params: paramsOf(ctx),
      query,
      body: ctx.request.body,
      precondition: isConditional ? preconditionOf(ctx, ifExists) : undefined,
      isMergePatch: method === "patch" && isJson(ctx.get("content-type"), MERGE_PATCH),
    };
    const isRepeatable = hasKey && ctx.req.headers["idempotency-key"] !== undefined;
    // No operation with a key responds with 204, the only response without a body.
    const attempt = ({ linkId }: Attempt) => run({ ...caller, linkId }, request) as Promise<ServiceResponse>;
    const response = isRepeatable
      ? await respondOnce(ctx, { caller, operation: id }, attempt, runOnce)
      : await run(caller, request);
    ctx.status = response.status;
    ctx.set(response.headers ?? {});
    ctx.body = response.body;
    const { ETag } = response.headers ?? {};
    if (headers.includes("If-None-Match") && ETag && matchesIfNoneMatch(ctx, ETag)) ctx.status = 304;
  };
}

/** @throws Problem 404 if a parameter can't be decoded, or 422 for a PUT, which would create what it names */
function paramsOf({ method, path, params = {} }: Context): OperationRequest["params"] {
  // The router keeps a parameter that it can't decode, so two IDs would share one URL.
  if (tryTo(() => decodeURIComponent(path))) return params as OperationRequest["params"];
  if (method !== "PUT") throw notFound("URL");
  throw invalidField(Object.keys(params).join(), "must be percent-encoded UTF-8");
}
