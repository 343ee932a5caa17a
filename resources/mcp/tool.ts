import { z } from "zod";
import type { AuthenticatedCaller } from "../access/bearer.ts";
import type { ApiScope } from "../access/scopes.ts";
import type { ServiceResponse } from "../http/api-context.ts";
import { validate } from "../http/validate.ts";
import { KEY, KEY_RULE, type RunOnce } from "../idempotency/run-once.ts";
import type { Operation, OperationRequest } from "../openapi/operation.ts";
import { deletionSchema, type ToolDeclaration } from "../openapi/tool-declaration.ts";

type Description = Omit<ToolDeclaration, "question" | "toResult"> & {
  description: string;
  scopes: readonly ApiScope[];
  input: z.ZodObject;
  /** The schema shown to agents, if the service validates more than `input` does. */
  shownInput?: z.ZodObject;
  output: z.ZodObject;
};

/** An MCP tool, backed by the same services as REST. */
export type Tool = Description & (PlainTool | IdempotentTool);
type Input = Record<string, unknown>;
type Output = Record<string, unknown>;
type PlainTool = {
  operation?: never;
  question?: ToolDeclaration["question"] | undefined;
  run(caller: AuthenticatedCaller, input: Input): Promise<Output>;
};
/** A tool equivalent to a POST: it takes an idempotency key, which it shares with the POST. */
type IdempotentTool = {
  operation: string;
  question?: never;
  /** Returns the response of the POST, which is stored under the key. */
  run(caller: AuthenticatedCaller, input: Input): Promise<ServiceResponse>;
  toResult?: ToolDeclaration["toResult"] | undefined;
};

/** Returns the tool of an operation, in a list: empty if it has none. */
export function toolsOf({ tool, run, ...operation }: Operation): Tool[] {
  if (!tool || !run) return [];
  const { id, method, scopes, params, query, body, responses, description = "" } = operation;
  const [{ body: output } = {}] = Object.values(responses);
  const { question, toResult, ...declared } = tool;
  const shape = { ...params?.shape, ...query?.shape, ...(body as z.ZodObject | undefined)?.shape };
  const described: Description = {
    description,
    scopes: scopes === "open" ? [] : scopes,
    input: z.strictObject(shape),
    ...declared,
    output: declared.output ?? (output as z.ZodObject | undefined) ?? deletionSchema,
  };
  const perform = (caller: AuthenticatedCaller, input: Input) => {
    const names = Object.keys(params?.shape ?? {});
    const isParam = ([name]: [string, unknown]) => names.includes(name);
    const fields = Object.entries(input);
    const rest = Object.fromEntries(fields.filter((field) => !isParam(field)));
    const values = Object.fromEntries(fields.filter(isParam)) as OperationRequest["params"];
    return run(caller, { params: values, query: rest, body: rest });
  };
  if (method === "post") {
    // No POST responds with 204, the only response without a body.
    return [{ ...described, operation: id, run: perform as IdempotentTool["run"], toResult }];
  }
  return [
    {
      ...described,
      question,
      async run(caller, input) {
        const { body } = await perform(caller, input);
        return body ?? { deleted: true, id: input.id };
      },
    },
  ];
}

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
