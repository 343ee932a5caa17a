import type { Router } from "@koa/router";
import type { Middleware } from "koa";
import type { z } from "zod";
import type { Gate } from "../bearer.ts";
import { json } from "../body.ts";
import type { ProblemCode } from "../problems.ts";
import { readQuery } from "../query.ts";
import type { ApiScope } from "../scopes.ts";
import type { AnswerHeader, RequestHeader } from "./headers.ts";

/** One call of the API: what it does, and what the document says about it. */
export type Operation = {
  /** The operationId: a verb and a noun, unique. */
  id: string;
  method: "get" | "post" | "put" | "patch" | "delete";
  /** As in the document: `/v1/links/{id}`. */
  path: `/v1/${string}`;
  /** The chapter of the documentation that it belongs to. */
  tag: "Links" | "Analytics" | "Webhooks" | "Organization" | "Documentation";
  /** A few words, as a heading. */
  summary: string;
  description?: string;
  /** Every scope that it needs; `open` needs no token at all. */
  scopes: readonly ApiScope[] | "open";
  /** What stands in the braces of the path. */
  params?: z.ZodObject;
  /** What the core validates the query with; `ctx.state.query` has its words as numbers and truth values. */
  query?: z.ZodObject;
  /** What the core validates the body with. */
  body?: z.ZodType;
  /** The headers that it heeds, beyond those that every operation does. */
  headers?: readonly RequestHeader[];
  answers: Record<number, Answer>;
  /** Codes beyond those that follow from the token, the query and the body. */
  refusals?: readonly ProblemCode[];
  handler: Middleware;
};

/** An answer that is no refusal; without a body it has none. */
export type Answer = { description: string; body?: z.ZodType; headers?: readonly AnswerHeader[] };

/** Adds an operation to the API and to its document, which is why they cannot disagree. */
export type Declare = (operation: Operation) => void;

type DeclareOptions = {
  gate: Gate;
  /** Answers a POST again that was sent twice; it stands behind the body and in front of the handler. */
  idempotent(operation: Operation): Middleware;
};

/** @returns `declare`, and the list of what was declared with it */
export function declareOn(router: Router, { gate, idempotent }: DeclareOptions) {
  const operations: Operation[] = [];
  const declare: Declare = (operation) => {
    operations.push(operation);
    router.register(toPattern(operation.path), [operation.method], stepsOf(operation));
  };

  /** The policy: what a request meets, in this order. */
  function stepsOf(operation: Operation): Middleware[] {
    const { method, scopes, query, body, handler } = operation;
    return [
      ...(scopes === "open" ? [] : [gate.bearer(...scopes)]),
      ...(query ? [readQuery(query)] : []),
      ...(body ? [json] : []),
      ...(method === "post" ? [idempotent(operation)] : []),
      handler,
    ];
  }

  return { declare, operations };
}

/** The router's way to write `{id}`. */
function toPattern(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ":$1");
}
