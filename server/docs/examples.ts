import type { OperationObject } from "../../resources/openapi/operation-object.ts";
import { exampleOf } from "./fields.ts";
import { codeBlock } from "./markdown-writer.ts";

/** An operation with its method and path. */
export type LocatedOperation = { base: string; method: string; path: string; operation: OperationObject };
type Ids = Record<string, unknown>;

/** Returns a request with curl and, if it has the operation, with the TypeScript client. `TOKEN` is in the environment. */
export function requestExamples(located: LocatedOperation, body: unknown): string {
  const { parameters, security } = located.operation;
  const inPath = parameters.filter((parameter) => parameter.in === "path");
  const ids: Ids = Object.fromEntries(inPath.map(({ name, schema }) => [name, exampleOf(schema) ?? name]));
  const curl = codeBlock("sh", curlOf(located, ids, body), "curl");
  if (!security.some(({ oauth2 }) => oauth2)) return curl;
  return `${curl}\n\n${codeBlock("ts", callOf(located, ids, body), "TypeScript")}`;
}

function curlOf({ base, method, path, operation }: LocatedOperation, ids: Ids, body: unknown): string {
  const url = base + path.replaceAll(/\{(\w+)\}/g, (_, name) => String(ids[name]));
  // curl sends a GET by default, and a POST if there is a body.
  const isDefault = method === "get" || (method === "post" && body !== undefined);
  return [
    `curl ${isDefault ? "" : `-X ${method.toUpperCase()} `}${url}`,
    operation.security.length > 0 && '-H "Authorization: Bearer $TOKEN"',
    body !== undefined && '-H "Content-Type: application/json"',
    body !== undefined && `-d '${toJson(body).replaceAll("'", `'\\''`).replaceAll("\n", "\n  ")}'`,
  ]
    .filter(Boolean)
    .join(" \\\n  ");
}

function callOf({ base, operation }: LocatedOperation, ids: Ids, body: unknown): string {
  const input = { ...ids, ...(body as object | undefined) };
  const argument =
    Object.keys(input).length === 0 ? "" : toJson(input).replaceAll(/^( *)"(\w+)":/gm, "$1$2:");
  const call = `await linkgate.${operation.operationId}(${argument})`;
  const returnsJson = Object.entries(operation.responses).some(
    ([status, { content }]) => status.startsWith("2") && content,
  );
  return `import { createClient } from "@linkgate/client";

const linkgate = createClient({
  baseUrl: "${base}",
  accessToken: () => process.env.TOKEN ?? "",
});

${returnsJson ? `console.log(${call});` : `${call};`}`;
}

function toJson(value: unknown): string {
  return JSON.stringify(value, null, 2);
}
