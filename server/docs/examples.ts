import type { OperationObject } from "../../resources/openapi/operation-object.ts";
import { exampleOf } from "./fields.ts";

/** An operation with its method and path. */
export type LocatedOperation = { base: string; method: string; path: string; operation: OperationObject };

/** Returns the request of an operation in three languages, as Markdown. `TOKEN` is in the environment. */
export function requestExamples(located: LocatedOperation, body: unknown): string {
  return [
    fenced("sh", curlOf(located, body), "curl"),
    fenced("ts", fetchOf(located, body), "TypeScript"),
    fenced("python", requestsOf(located, body), "Python"),
  ].join("\n\n");
}

export function fenced(language: string, code: string, title?: string): string {
  return `\`\`\`${language}${title ? ` title="${title}"` : ""}\n${code}\n\`\`\``;
}

export function json(value: unknown): string {
  return JSON.stringify(value, null, 2);
}

function urlOf({ base, path, operation: { parameters } }: LocatedOperation): string {
  const examplePath = path.replaceAll(/\{(\w+)\}/g, (_, name) => {
    const { schema } = parameters.find((parameter) => parameter.name === name) ?? {};
    return String(exampleOf(schema) ?? name);
  });
  return base + examplePath;
}

function curlOf(located: LocatedOperation, body: unknown): string {
  const { method, operation } = located;
  // curl sends a GET by default, and a POST if there is a body.
  const isDefault = method === "get" || (method === "post" && body !== undefined);
  return [
    `curl ${isDefault ? "" : `-X ${method.toUpperCase()} `}${urlOf(located)}`,
    operation.security.length > 0 && '-H "Authorization: Bearer $TOKEN"',
    body !== undefined && '-H "Content-Type: application/json"',
    body !== undefined && `-d ${quoted(json(body).replaceAll("\n", "\n  "))}`,
  ]
    .filter(Boolean)
    .join(" \\\n  ");
}

function fetchOf(located: LocatedOperation, body: unknown): string {
  const { method, operation } = located;
  const headers = [
    operation.security.length > 0 && `Authorization: \`Bearer \${process.env.TOKEN}\`,`,
    body !== undefined && '"Content-Type": "application/json",',
  ].filter(Boolean);
  const options = [
    method !== "get" && `  method: "${method.toUpperCase()}",`,
    headers.length > 0 && `  headers: {\n    ${headers.join("\n    ")}\n  },`,
    body !== undefined && `  body: JSON.stringify(${json(body).replaceAll("\n", "\n  ")}),`,
  ].filter(Boolean);
  const init = options.length > 0 ? `, {\n${options.join("\n")}\n}` : "";
  return `const response = await fetch("${urlOf(located)}"${init});
${returnsJson(operation) ? "console.log(await response.json());" : "console.log(response.status);"}`;
}

function requestsOf(located: LocatedOperation, body: unknown): string {
  const { method, operation } = located;
  const lines = [
    `    "${urlOf(located)}",`,
    operation.security.length > 0 && `    headers={"Authorization": f"Bearer {os.environ['TOKEN']}"},`,
    body !== undefined && `    json=${pythonOf(body).replaceAll("\n", "\n    ")},`,
  ].filter(Boolean);
  return `${operation.security.length > 0 ? "import os\n" : ""}import requests  # pip install requests

response = requests.${method}(
${lines.join("\n")}
)
${returnsJson(operation) ? "print(response.json())" : "print(response.status_code)"}`;
}

function returnsJson({ responses }: OperationObject): boolean {
  return Object.entries(responses).some(([status, { content }]) => status.startsWith("2") && content);
}

/** Returns a value of JSON as a Python literal. */
function pythonOf(value: unknown): string {
  const text = json(value);
  return text.replaceAll(
    /^( *(?:"(?:[^"\\\n]|\\.)*": )?)(true|false|null)(,?)$/gm,
    (_, start, word, comma) => {
      const literal = { true: "True", false: "False", null: "None" }[word as "true" | "false" | "null"];
      return `${start}${literal}${comma}`;
    },
  );
}

/** Quotes text for a POSIX shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
