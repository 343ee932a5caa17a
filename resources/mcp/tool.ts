import { z } from "zod";
import type { Answer } from "../answer.ts";
import type { Caller } from "../bearer.ts";
import { KEY, KEY_RULE, type Once } from "../idempotency.ts";
import type { ApiScope } from "../scopes.ts";
import { validate } from "../validate.ts";

/** What a tool is, whatever it does. */
type Description = {
  name: string;
  title: string;
  description: string;
  /** Every scope that it needs. */
  scopes: readonly ApiScope[];
  /** What is checked before the tool runs. */
  input: z.ZodObject;
  /** What agents are shown, where the core checks more than the tool does. */
  shownInput?: z.ZodObject;
  output: z.ZodObject;
  annotations: {
    readOnlyHint: boolean;
    destructiveHint?: boolean;
    idempotentHint?: boolean;
    openWorldHint: boolean;
  };
};

/** One tool: the same core as REST, under a name that an agent reads. */
export type Tool = Description & (Plain | Keyed);
type Input = Record<string, unknown>;
type Plain = { operation?: never; run(caller: Caller, input: Input): Promise<Record<string, unknown>> };
/** It does what a POST does: a key makes that happen once, whichever of the two it was sent to. */
type Keyed = {
  /** The operationId of the POST. */
  operation: string;
  run(caller: Caller, input: Input): Promise<Answer>;
};

const idempotencyKey = z
  .string()
  .regex(KEY, { error: KEY_RULE })
  .optional()
  .describe(
    "Any text, new for each thing that you want done. If you cannot tell whether a call succeeded, send the same again with the same key: it is not done twice.",
  );

/** What a tool takes: its input, and a key where one counts. */
export function inputOf({ operation, input, shownInput = input }: Tool): z.ZodObject {
  return operation === undefined ? shownInput : shownInput.extend({ idempotency_key: idempotencyKey });
}

/**
 * Runs a tool; its input is validated after the key was looked at, for what was valid when it was done is answered again.
 * @throws Problem for a refusal
 */
export async function runTool(tool: Tool, caller: Caller, input: Input, once: Once): Promise<Result> {
  if (tool.operation === undefined) return { body: await tool.run(caller, validate(tool.input, input)) };
  const { idempotency_key: key, ...rest } = input;
  const perform = (actor: Caller) => tool.run(actor, validate(tool.input, rest));
  if (key === undefined) return perform(caller);
  validate(z.object({ idempotency_key: idempotencyKey }), { idempotency_key: key });
  const request = { caller, key: key as string, operation: tool.operation, input: rest };
  return once(request, ({ linkId }) => perform({ ...caller, linkId }));
}

/** What a tool answers; `isReplayed` when it has answered so before. */
type Result = { body: Record<string, unknown>; isReplayed?: boolean };

/** Annotations of tools that change nothing. */
export const READS: Tool["annotations"] = { readOnlyHint: true, openWorldHint: false };
/** Annotations of tools that add something each time. */
export const ADDS: Tool["annotations"] = {
  readOnlyHint: false,
  destructiveHint: false,
  idempotentHint: false,
  openWorldHint: false,
};
/** Annotations of tools that replace or remove what was there; a second time changes nothing more. */
export const REPLACES: Tool["annotations"] = {
  readOnlyHint: false,
  destructiveHint: true,
  idempotentHint: true,
  openWorldHint: false,
};
