import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import type { AuthenticatedCaller } from "../access/bearer.ts";
import type { ApiScope } from "../access/scopes.ts";
import { isObject, typeOfField, validate } from "../http/validate.ts";
import { KEY, KEY_RULE, type RunOnce, type ServiceResponse } from "../idempotency/run-once.ts";
import type {
  Operation,
  OperationRequest,
  OperationResponse,
  ToolDeclaration,
} from "../openapi/operation.ts";

type Fields = Record<string, unknown>;

/** An MCP tool: an operation of the API, with one input and one result. */
export type Tool = Pick<ToolDeclaration, "name" | "fieldsAsIn"> & {
  title: string;
  description: string;
  annotations: NonNullable<ToolDeclaration["annotations"]>;
  scopes: readonly ApiScope[];
  /** The schemas shown to agents. The operation validates its input, so its errors are those of REST. */
  input: z.ZodObject;
  output: z.ZodObject;
  /** Returns what the user confirms first; undefined if it is nothing. */
  question(caller: AuthenticatedCaller, input: Fields): Promise<string | undefined>;
  run(caller: AuthenticatedCaller, input: Fields): Promise<ToolResult>;
};

export type ToolResult = { body: Fields; isReplayed?: boolean | undefined };

// About 100 links of the usual size, and 16,000 tokens for an agent.
const PAGE_LENGTH = 64 * 1024;

// The instructions of the server describe it.
const idempotencyKey = z
  .string()
  .refine((key) => KEY.test(key), { error: KEY_RULE })
  .optional();

// By type. That of a text is empty, too.
const EMPTY: Record<string, unknown> = { number: 0, object: {} };
const NO_PARAMS: z.ZodObject = z.object({});
// With the ID, and the reason if it is kept.
const deletionSchema = z.looseObject({ deleted: z.boolean() });

type Shape = Record<string, z.ZodType>;

/** Hosts accept only schemas with one type, so a field that can be null is cleared by an empty value of its type. */
function withNulls(shape: Shape, fields: Fields): Fields {
  const convert = ([name, value]: [string, unknown]): [string, unknown] => {
    const field = Object.hasOwn(shape, name) ? shape[name] : undefined;
    const isEmpty = field && isDeepStrictEqual(value, EMPTY[typeOfField(field)] ?? "");
    if (isEmpty && field.safeParse(null).success) return [name, null];
    const inner = shapeOf(field);
    return [name, inner && isObject(value) ? withNulls(inner, value) : value];
  };
  return Object.fromEntries(Object.entries(fields).map(convert));
}

function shapeOf(field: z.ZodType | undefined): Shape | undefined {
  if (field instanceof z.ZodOptional) return shapeOf(field.unwrap() as z.ZodType);
  return field instanceof z.ZodObject ? field.shape : undefined;
}

/** Returns the tool of an operation, in a list: empty if it has none. */
export function toolsOf({ tool, run, ...operation }: Operation, runOnce: RunOnce): Tool[] {
  if (!tool || !run) return [];
  const { id, method, hasKey, scopes, params = NO_PARAMS, query, body, responses } = operation;
  const { summary: title, description = "" } = operation;
  const { question, toResult, ...declared } = tool;
  const [{ body: output } = {}] = Object.values(responses);
  const fieldsOfBody: Shape = (body as z.ZodObject | undefined)?.shape ?? {};
  const whole: z.ZodObject = z.strictObject({
    ...params.shape,
    ...query?.shape,
    ...fieldsOfBody,
    // The body of an upsert may repeat its parameter.
    ...params.shape,
  });
  const { input = whole } = declared;
  const path = query || body ? params : whole;
  // The operation validates the rest. If the path is wrong, the error names all wrong fields.
  const pathOf = (fields: Fields) =>
    (path.safeParse(fields).data ?? validate(whole, fields)) as OperationRequest["params"];

  const perform = (caller: AuthenticatedCaller, input: Fields): Promise<OperationResponse> => {
    const fields = method === "patch" ? withNulls(fieldsOfBody, input) : input;
    const ofPath = pathOf(fields);
    const rest = Object.fromEntries(Object.entries(fields).filter(([name]) => !Object.hasOwn(ofPath, name)));
    return run(caller, { params: ofPath, query: rest, body: rest, pageLength: PAGE_LENGTH });
  };

  /** An idempotency key is looked up before the input is validated, so a replay always succeeds. */
  function performOnce(caller: AuthenticatedCaller, { idempotency_key: key, ...fields }: Fields) {
    if (key === undefined) return perform(caller, fields);
    validate(z.object({ idempotency_key: idempotencyKey }), { idempotency_key: key });
    const request = { caller, key: key as string, operation: id, input: fields };
    // No operation with a key responds with 204, the only response without a body.
    return runOnce(
      request,
      ({ linkId }) => perform({ ...caller, linkId }, fields) as Promise<ServiceResponse>,
    );
  }

  return [
    {
      title,
      description,
      ...declared,
      // Explicit, because the defaults of an absent hint are those of the most dangerous tool.
      annotations: {
        readOnlyHint: method === "get",
        // MCP, "ToolAnnotations": these two mean something only if the tool isn't read-only.
        ...(method !== "get" && { destructiveHint: method !== "post", idempotentHint: method !== "post" }),
        openWorldHint: false,
        ...declared.annotations,
      },
      scopes: scopes === "open" ? [] : scopes,
      input: hasKey ? input.extend({ idempotency_key: idempotencyKey }) : input,
      output: declared.output ?? (output as z.ZodObject | undefined) ?? deletionSchema,
      question: async (caller, fields) => question?.(caller, pathOf(fields)),
      async run(caller, fields) {
        const response: OperationResponse & { isReplayed?: boolean } = await (hasKey ? performOnce : perform)(
          caller,
          fields,
        );
        if (!response.body) return { body: { deleted: true, id: fields.id } };
        return { body: toResult?.(response, caller) ?? response.body, isReplayed: response.isReplayed };
      },
    },
  ];
}
