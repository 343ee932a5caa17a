import type { Router } from "@koa/router";
import type { z } from "zod";
import type { BearerCheck } from "../access/bearer.ts";
import type { ApiScope } from "../access/scopes.ts";
import type { ApiMiddleware } from "../http/api-context.ts";
import { jsonBody } from "../http/json-body.ts";
import type { ProblemCode } from "../http/problem-codes.ts";
import { readQuery } from "../http/query.ts";
import { BODY_MAX } from "../http/read-body.ts";
import type { RequestHeader, ResponseHeader } from "./headers.ts";

/** An operation of the REST API: its handler and its documentation. */
export type Operation = {
  /** The operationId: a verb and a noun, unique. */
  id: string;
  method: "get" | "post" | "put" | "patch" | "delete";
  /** In the syntax of OpenAPI: `/v1/links/{id}`. */
  path: `/v1/${string}`;
  /** The section of the documentation. */
  tag: "Links" | "Analytics" | "Webhooks" | "Organization" | "Documentation";
  /** A short heading. */
  summary: string;
  description?: string;
  /** All required scopes; `open` requires no token. */
  scopes: readonly ApiScope[] | "open";
  /** The path parameters. */
  params?: z.ZodObject;
  /** The schema that the service validates the query with. `ctx.state.query` has its numbers and booleans converted. */
  query?: z.ZodObject;
  /** The schema that the service validates the body with. */
  body?: z.ZodType;
  /** The most bytes of the body; 64 KB by default. */
  bodyLimit?: number;
  /** The request headers that this operation supports in addition to the common ones. */
  headers?: readonly RequestHeader[];
  responses: Record<number, SuccessResponse>;
  /** Error codes in addition to those of the token, the query and the body. */
  errors?: readonly ProblemCode[];
  handler: ApiMiddleware;
};

/** A response other than an error. */
export type SuccessResponse = { description: string; body?: z.ZodType; headers?: readonly ResponseHeader[] };

/** Adds an operation to the router and to the document, which therefore always agree. */
export type Declare = (operation: Operation) => void;

type DeclareOptions = {
  bearerCheck: BearerCheck;
  /** Returns middleware that replays the response of a repeated POST; it runs between the body parser and the handler. */
  idempotent(operation: Operation): ApiMiddleware;
};

/** @returns `declare`, and the list of operations declared with it */
export function createDeclare(router: Router, options: DeclareOptions) {
  const operations: Operation[] = [];
  const declare: Declare = (operation) => {
    operations.push(operation);
    router.register(toPattern(operation.path), [operation.method], middlewareOf(operation, options));
  };
  return { declare, operations };
}

/** Returns the middleware of an operation, in the order in which a request passes through it. */
function middlewareOf(operation: Operation, { bearerCheck, idempotent }: DeclareOptions): ApiMiddleware[] {
  const { method, scopes, query, body, bodyLimit = BODY_MAX, handler } = operation;
  return [
    ...(scopes === "open" ? [] : [bearerCheck.bearer(...scopes)]),
    ...(query ? [readQuery(query)] : []),
    ...(body ? [jsonBody(bodyLimit)] : []),
    ...(method === "post" ? [idempotent(operation)] : []),
    handler,
  ];
}

/** Converts `{id}` to the router's `:id`. */
function toPattern(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ":$1");
}
