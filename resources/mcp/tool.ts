import type { ToolAnnotations } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { AuthenticatedCaller } from "../access/bearer.ts";
import type { ApiScope } from "../access/scopes.ts";
import type { ServiceResponse } from "../http/api-context.ts";
import { validate } from "../http/validate.ts";
import { KEY, KEY_RULE, type RunOnce } from "../idempotency/run-once.ts";

type Description = {
  name: string;
  title: string;
  description: string;
  scopes: readonly ApiScope[];
  input: z.ZodObject;
  /** The tool that describes the fields: a client holds the schemas of all tools, so they are described once. */
  fieldsAsIn?: string;
  /** The schema shown to agents, if the service validates more than `input` does. */
  shownInput?: z.ZodObject;
  output: z.ZodObject;
  /** All four are explicit: the defaults of an absent hint are those of the most dangerous tool. */
  annotations: Required<Omit<ToolAnnotations, "title">>;
};

/** An MCP tool, backed by the same services as REST. */
export type Tool = Description & (PlainTool | IdempotentTool);
type Input = Record<string, unknown>;
type Output = Record<string, unknown>;
type PlainTool = {
  operation?: never;
  /** Returns what a user confirms before the tool deletes something, in clients that can ask. */
  question?(caller: AuthenticatedCaller, input: Input): Promise<string>;
  run(caller: AuthenticatedCaller, input: Input): Promise<Output>;
};
/** A tool equivalent to a POST: it takes an idempotency key, which it shares with the POST. */
type IdempotentTool = {
  operation: string;
  question?: never;
  /** Returns the response of the POST, which is stored under the key. */
  run(caller: AuthenticatedCaller, input: Input): Promise<ServiceResponse>;
  /** Converts that response, new or replayed, to the result of the tool, if they differ. */
  toResult?(response: Output, caller: AuthenticatedCaller): Output;
};

const idempotencyKey = z
  .string()
  .refine((key) => KEY.test(key), { error: KEY_RULE })
  .optional()
  .describe("Unique per call; retries reuse it.");

/** Returns the input schema of a tool, with `idempotency_key` if it takes one. */
export function inputSchemaOf({ operation, input, shownInput = input }: Tool): z.ZodObject {
  return operation === undefined ? shownInput : shownInput.extend({ idempotency_key: idempotencyKey });
}

/** Runs a tool. The idempotency key is looked up before the input is validated, so a replay always succeeds. */
export async function runTool(
  tool: Tool,
  caller: AuthenticatedCaller,
  input: Input,
  runOnce: RunOnce,
): Promise<Result> {
  if (tool.operation === undefined) return { body: await tool.run(caller, validate(tool.input, input)) };
  const response = await runPost(tool, caller, input, runOnce);
  return { ...response, body: tool.toResult?.(response.body, caller) ?? response.body };
}

async function runPost(
  tool: Description & IdempotentTool,
  caller: AuthenticatedCaller,
  input: Input,
  runOnce: RunOnce,
): Promise<Result> {
  const { idempotency_key: key, ...rest } = input;
  const perform = (caller: AuthenticatedCaller) => tool.run(caller, validate(tool.input, rest));
  if (key === undefined) return perform(caller);
  validate(z.object({ idempotency_key: idempotencyKey }), { idempotency_key: key });
  const request = { caller, key: key as string, operation: tool.operation, input: rest };
  return runOnce(request, ({ linkId }) => perform({ ...caller, linkId }));
}

type Result = { body: Output; isReplayed?: boolean };

/** Annotations of tools that add something with each call. */
export const CREATES: Tool["annotations"] = {
  readOnlyHint: false,
  destructiveHint: false,
  idempotentHint: false,
  openWorldHint: false,
};
export const READS = { ...CREATES, readOnlyHint: true, idempotentHint: true };
/** Annotations of tools that replace or delete something; repeating the call has no further effect. */
export const REPLACES = { ...CREATES, destructiveHint: true, idempotentHint: true };

/** Returns the schema of a result, with some fields more, that another tool's output schema describes in full. */
export function sameAs(tool: string, more: z.ZodRawShape = {}): z.ZodObject {
  return z.looseObject(more).describe(`As ${tool} returns it.`);
}

export const deletionSchema = z.object({
  deleted: z.boolean(),
  id: z.string(),
  reason: z.string().optional(),
});
