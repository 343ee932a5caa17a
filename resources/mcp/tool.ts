import { z } from "zod";
import type { AuthenticatedCaller } from "../access/bearer.ts";
import type { ApiScope } from "../access/scopes.ts";
import type { ServiceResponse } from "../http/response.ts";
import { validate } from "../http/validate.ts";
import { KEY, KEY_RULE, type RunOnce } from "../idempotency/run-once.ts";

type Description = {
  name: string;
  title: string;
  description: string;
  /** All required scopes. */
  scopes: readonly ApiScope[];
  /** Validates the input before the tool runs. */
  input: z.ZodObject;
  /** The schema shown to agents, if the service validates more than `input` does. */
  shownInput?: z.ZodObject;
  output: z.ZodObject;
  annotations: {
    readOnlyHint: boolean;
    destructiveHint?: boolean;
    idempotentHint?: boolean;
    openWorldHint: boolean;
  };
};

/** An MCP tool, backed by the same services as REST. */
export type Tool = Description & (PlainTool | IdempotentTool);
type Input = Record<string, unknown>;
type PlainTool = {
  operation?: never;
  run(caller: AuthenticatedCaller, input: Input): Promise<Record<string, unknown>>;
};
/** A tool equivalent to a POST: it takes an idempotency key, which it shares with the POST. */
type IdempotentTool = {
  /** The operationId of the POST. */
  operation: string;
  run(caller: AuthenticatedCaller, input: Input): Promise<ServiceResponse>;
};

const idempotencyKey = z
  .string()
  .regex(KEY, { error: KEY_RULE })
  .optional()
  .describe(
    "A unique string per operation, such as a UUID. If you don't know whether a call succeeded, retry it with the same key: it won't run twice.",
  );

/** Returns the input schema of a tool, with `idempotency_key` if it takes one. */
export function inputSchemaOf({ operation, input, shownInput = input }: Tool): z.ZodObject {
  return operation === undefined ? shownInput : shownInput.extend({ idempotency_key: idempotencyKey });
}

/**
 * Runs a tool. The idempotency key is looked up before the input is validated, so a replay succeeds even if the input is
 * no longer valid.
 * @throws Problem
 */
export async function runTool(
  tool: Tool,
  caller: AuthenticatedCaller,
  input: Input,
  runOnce: RunOnce,
): Promise<Result> {
  if (tool.operation === undefined) return { body: await tool.run(caller, validate(tool.input, input)) };
  const { idempotency_key: key, ...rest } = input;
  const perform = (caller: AuthenticatedCaller) => tool.run(caller, validate(tool.input, rest));
  if (key === undefined) return perform(caller);
  validate(z.object({ idempotency_key: idempotencyKey }), { idempotency_key: key });
  const request = { caller, key: key as string, operation: tool.operation, input: rest };
  return runOnce(request, ({ linkId }) => perform({ ...caller, linkId }));
}

type Result = { body: Record<string, unknown>; isReplayed?: boolean };

/** Annotations of tools that change nothing. */
export const READS: Tool["annotations"] = { readOnlyHint: true, openWorldHint: false };
/** Annotations of tools that add something with each call. */
export const CREATES: Tool["annotations"] = {
  readOnlyHint: false,
  destructiveHint: false,
  idempotentHint: false,
  openWorldHint: false,
};
/** Annotations of tools that replace or delete something; repeating the call has no further effect. */
export const REPLACES: Tool["annotations"] = {
  readOnlyHint: false,
  destructiveHint: true,
  idempotentHint: true,
  openWorldHint: false,
};
