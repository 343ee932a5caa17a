import type { OperationObject } from "../../../resources/openapi/document.ts";
import type { JsonSchema } from "../../../resources/openapi/json-schema.ts";

/** A call as it is pasted into a shell in which `TOKEN` is set. */
export function curlOf(
  { base, method, path }: { base: string; method: string; path: string },
  { parameters, security }: OperationObject,
  body: unknown,
): string {
  const address = path.replaceAll(/\{(\w+)\}/g, (_, name) => {
    const { schema } = parameters.find((parameter) => parameter.name === name) ?? {};
    return String(exampleOf(schema) ?? name);
  });
  const isGet = method === "get" || (method === "post" && body !== undefined);
  return [
    `curl ${isGet ? "" : `-X ${method.toUpperCase()} `}${base}${address}`,
    security.length > 0 && '-H "Authorization: Bearer $TOKEN"',
    body !== undefined && '-H "Content-Type: application/json"',
    body !== undefined && `-d ${quoted(JSON.stringify(body, null, 2).replaceAll("\n", "\n  "))}`,
  ]
    .filter(Boolean)
    .join(" \\\n  ");
}

/** The first example of a schema. */
export function exampleOf(schema: JsonSchema | undefined): unknown {
  return (schema?.examples as unknown[] | undefined)?.[0];
}

/** A word of a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
