import type { JsonSchema } from "../../resources/openapi/json-schema.ts";
import type { OperationObject } from "../../resources/openapi/operation-object.ts";

/** Returns a shell script that sets `TOKEN`, or prints the error of the token endpoint. */
export function tokenScript(base: string, clientId: string): string {
  return `RESPONSE=$(curl -sS --fail-with-body ${base}/oauth/token \\
  -d grant_type=client_credentials \\
  -d client_id=${clientId} \\
  -d client_secret="\${CLIENT_SECRET:?}") || echo "$RESPONSE" >&2
TOKEN=$(echo "$RESPONSE" | sed -n 's/.*"access_token":"\\([^"]*\\)".*/\\1/p')`;
}

/** Returns a curl command for an operation; it expects `TOKEN` in the environment. */
export function curlOf(
  { base, method, path }: { base: string; method: string; path: string },
  { parameters, security }: OperationObject,
  body: unknown,
): string {
  const examplePath = path.replaceAll(/\{(\w+)\}/g, (_, name) => {
    const { schema } = parameters.find((parameter) => parameter.name === name) ?? {};
    return String(exampleOf(schema) ?? name);
  });
  // curl sends a GET by default, and a POST if there is a body.
  const isDefault = method === "get" || (method === "post" && body !== undefined);
  return [
    `curl ${isDefault ? "" : `-X ${method.toUpperCase()} `}${base}${examplePath}`,
    security.length > 0 && '-H "Authorization: Bearer $TOKEN"',
    body !== undefined && '-H "Content-Type: application/json"',
    body !== undefined && `-d ${quoted(JSON.stringify(body, null, 2).replaceAll("\n", "\n  "))}`,
  ]
    .filter(Boolean)
    .join(" \\\n  ");
}

/** Returns the first example of a schema. */
export function exampleOf(schema: JsonSchema | undefined): unknown {
  return (schema?.examples as unknown[] | undefined)?.[0];
}

/** Quotes text for a POSIX shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
