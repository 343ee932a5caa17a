import { z } from "zod";
import type { AuthenticatedCaller } from "../access/bearer.ts";
import type { ServiceResponse } from "../http/service-response.ts";

type Fields = Record<string, unknown>;

/** What a tool has beyond the operation that it belongs to. */
export type ToolDeclaration = {
  name: string;
  title: string;
  /** All four are explicit: the defaults of an absent hint are those of the most dangerous tool. */
  annotations: Record<"readOnlyHint" | "destructiveHint" | "idempotentHint" | "openWorldHint", boolean>;
  /** For a model, if the operation's description says too much for it or too little. */
  description?: string;
  /** The tool that describes the fields: a client holds the schemas of all tools, so they are described once. */
  fieldsAsIn?: string;
  /** The schema of the input, if a model needs to know less of it than the operation accepts. */
  input?: z.ZodObject;
  /** The values that stand for null, by field: hosts accept only schemas with one type. */
  clearedBy?: Fields;
  /** The schema of the result, if another tool describes it or it differs from the response. */
  output?: z.ZodObject;
  /** Returns what a user confirms before the tool deletes something, in clients that can ask. */
  question?(caller: AuthenticatedCaller, path: { id: string }): Promise<string>;
  /** Converts the response, new or replayed, to the result of the tool, if its body isn't the result. */
  toResult?(response: ServiceResponse, caller: AuthenticatedCaller): Fields;
};

/** Annotations of tools that add something with each call. */
export const CREATES: ToolDeclaration["annotations"] = {
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
