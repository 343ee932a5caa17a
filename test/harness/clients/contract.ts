import { Ajv2020, type AnySchema, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import type { OpenApiDocument } from "../../../resources/openapi/document.ts";
import type { OperationObject } from "../../../resources/openapi/operation-object.ts";
import type { Reply } from "./api.ts";

type Contract = Awaited<ReturnType<typeof readContract>>;

const API = "/v1/openapi.json";
/** The document of the management API; pages have the same addresses, so most of them aren't in it. */
export const MANAGEMENT = "/dashboard/openapi.json";

const contracts = new Map<string, Promise<Contract>>();

/** Returns a contract of the service at a URL. Reads the document once. */
export function contractOf(url: string, document = API): Promise<Contract> {
  const known = contracts.get(url + document) ?? readContract(url + document);
  contracts.set(url + document, known);
  return known;
}

/** Reads the documents again, for another version at the same URL. */
export function forgetContract(url: string): void {
  for (const document of [API, MANAGEMENT]) contracts.delete(url + document);
}

async function readContract(address: string) {
  const answer = await fetch(address);
  const document = (answer.ok ? await answer.json() : NOTHING) as OpenApiDocument;
  // The tests of the document validate its schemas.
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false });
  formats.default(ajv);
  // An annotation (JSON Schema 2020-12, "Format-Annotation"): the service also accepts the URLs of the WHATWG.
  ajv.addFormat("uri", true);
  ajv.addSchema(closed(document) as AnySchema, "document");
  const compiled = new Map<string, ValidateFunction>();
  const find = finderOf(document);

  function validate(pointer: string, body: unknown): string | undefined {
    const known = compiled.get(pointer) ?? ajv.compile({ $ref: `document#${pointer}` });
    compiled.set(pointer, known);
    return known(body) ? undefined : ajv.errorsText(known.errors);
  }

  return {
    document,
    describes: (method: string, path: string) => find(method, path) !== undefined,
    allows(method: string, path: string, body: unknown): boolean {
      const found = find(method, path);
      if (!found?.operation.requestBody) return false;
      return validate(schemaIn(found, "requestBody", "application/json"), body) === undefined;
    },
    /** @throws Error if the document does not describe the status, type, headers or body of a response */
    check(method: string, path: string, reply: Reply<unknown>): void {
      const found = find(method, path);
      const said =
        lacking(reply) ??
        (found ? complaint(found, method, reply, validate) : checkUnknownOperation(method, reply, validate));
      if (said) throw new Error(`${method} ${path} does not match the document: ${said}\n${reply.text}`);
    },
  };
}

/**
 * Closes the schemas of the document, which allow new response fields later: today a response has no field that they
 * don't name. Parts of an `allOf` declare no type and stay open.
 */
function closed<Node>(node: Node): Node {
  if (typeof node !== "object" || node === null) return node;
  if (Array.isArray(node)) return node.map(closed) as Node;
  const copy = Object.fromEntries(Object.entries(node).map(([name, value]) => [name, closed(value)]));
  const isOpen = copy.type === "object" && "properties" in copy && !("additionalProperties" in copy);
  return (isOpen ? { ...copy, additionalProperties: false } : copy) as Node;
}

type Found = { template: string; method: string; operation: OperationObject };
type Validate = (pointer: string, body: unknown) => string | undefined;

/** Finds the operation of a request. A literal path segment takes precedence over a parameter. */
function finderOf({ paths }: OpenApiDocument) {
  const templates = Object.keys(paths)
    .sort((a, b) => a.split("{").length - b.split("{").length)
    .map((template) => ({ template, pattern: new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/]+")}$`) }));
  return function find(method: string, path: string): Found | undefined {
    const name = method === "HEAD" ? "get" : method.toLowerCase();
    const [address = ""] = path.split("?");
    for (const { template, pattern } of templates) {
      const operation = paths[template]?.[name];
      if (operation && pattern.test(address)) return { template, method: name, operation };
    }
    return undefined;
  };
}

function lacking({ status, headers }: Reply<unknown>): string | undefined {
  const needed = NEEDED[status];
  return needed && !headers.has(needed) ? `no header ${needed}` : undefined;
}

function complaint(found: Found, asked: string, reply: Reply<unknown>, validate: Validate) {
  const { status, headers, text, body } = reply;
  const response = found.operation.responses[status];
  if (!response) return `the status ${status}`;
  const strange = HEADERS.filter((name) => headers.has(name) && !(name in response.headers));
  const absent = ALWAYS.filter((name) => name in response.headers && !headers.has(name));
  if (strange.length > 0) return `the header ${strange}`;
  if (absent.length > 0) return `no header ${absent}`;
  if (!isLimit(headers)) return `the limit ${headers.get("ratelimit-policy")}, ${headers.get("ratelimit")}`;
  if (asked === "HEAD") return undefined;
  if (!response.content) return text && "a body";
  const [type = ""] = (headers.get("content-type") ?? "").split(";");
  if (!(type in response.content)) return `the type ${type}`;
  return validate(schemaIn(found, `responses/${status}`, type), body);
}

function schemaIn({ template, method }: Found, part: string, type: string): string {
  const [path, media] = [template, type].map((name) => name.replaceAll("/", "~1"));
  return `/paths/${path}/${method}/${part}/content/${media}/schema`;
}

/**
 * Checks that both headers of one limit are sent (draft-ietf-httpapi-ratelimit-headers-11 §3 and §4), or neither if
 * limits are off.
 */
function isLimit(headers: Headers): boolean {
  const [, policy] = /^"(\w+)";q=\d+;w=\d+$/.exec(headers.get("ratelimit-policy") ?? "") ?? [];
  const [, limit] = /^"(\w+)";r=\d+;t=\d+$/.exec(headers.get("ratelimit") ?? "") ?? [];
  const isOff = !headers.has("ratelimit-policy") && !headers.has("ratelimit");
  return isOff || (policy !== undefined && policy === limit);
}

function checkUnknownOperation(method: string, { status, body }: Reply<unknown>, validate: Validate) {
  if (method === "OPTIONS") return undefined;
  if (status !== 404 && status !== 405) return `${status} for an operation that is not in the document`;
  return method === "HEAD" ? undefined : validate("/components/schemas/Problem", body);
}

/** The document of a server without an API, where every operation is unknown. */
const NOTHING = { paths: {}, components: { schemas: { Problem: {} } } };

const HEADERS = ["ETag", "Location", "Retry-After", "WWW-Authenticate", "Idempotency-Replayed"];
const ALWAYS = ["ETag", "Location", "X-Request-Id"];
/** Required by RFC 9110 §15.5.2 and §15.5.6, and by this service for the last two. */
const NEEDED: Record<number, string> = {
  401: "WWW-Authenticate",
  405: "Allow",
  429: "Retry-After",
  503: "Retry-After",
};
