import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import test from "ava";
import fc from "fast-check";
import type { JsonSchema } from "../../../resources/openapi/json-schema.ts";
import { type Api, apiAt, isProblem, type Reply } from "../../harness/clients/api.ts";
import { contractOf } from "../../harness/clients/contract.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "localhost" });
// Two organizations, so no webhook receives events of links.
const links = apiAt(service.url, await service.token(await service.createOrganization()));
const webhooks = apiAt(service.url, await service.token(await service.createOrganization()));
const { document } = await contractOf(service.url);
const ajv = new Ajv2020({ strict: false });
formats.default(ajv);
ajv.addSchema(document, "document");
const link = await links.createLink();
const { body: webhook } = await webhooks.send<{ id: string }>("POST", "/v1/webhooks", {
  json: { url: "http://localhost:1/", events: ["webhook.test"] },
});
test.after.always(() => service.close());

type Body = {
  name: string;
  api: Api;
  method: string;
  path: string;
  schema: JsonSchema & { properties: Record<string, JsonSchema>; required?: string[] };
  valid: Record<string, unknown>;
  accepts(body: unknown): boolean;
};

/** Every request body of the document, with the URL of an existing resource. */
const bodies: Body[] = Object.entries(document.paths).flatMap(([template, operations]) =>
  Object.entries(operations).flatMap(([method, { requestBody }]) => {
    const reference = requestBody?.content["application/json"]?.schema as { $ref: string } | undefined;
    if (!reference) return [];
    const schema = document.components.schemas[reference.$ref.split("/").at(-1) as string] as Body["schema"];
    const [api, { id }] = template.startsWith("/v1/links") ? [links, link] : [webhooks, webhook];
    return {
      name: `${method.toUpperCase()} ${template}`,
      api,
      method: method.toUpperCase(),
      path: template.replace("{id}", id).replace("{external_id}", "by-the-document"),
      schema,
      valid: withoutSlug((schema.examples as Record<string, unknown>[])[0]),
      accepts: ajv.compile({ $ref: `document${reference.$ref}` }),
    };
  }),
);

/** Removes unique values from an example, so it can be sent repeatedly. */
function withoutSlug({ slug, ...rest }: Record<string, unknown> = {}) {
  return rest;
}

/** Returns whether a response rejects the whole body, or one item of a bulk request. */
function isRejected({ status, body }: Reply<unknown>): boolean {
  const { results = [] } = (body ?? {}) as { results?: { status: number }[] };
  return status === 422 || results.some((result) => result.status === 422);
}

const VALUES: unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  1e300,
  303,
  "",
  "x".repeat(3000),
  "a b",
  "ü",
  "\n",
  [],
  ["x", 5],
  [""],
  Array.from({ length: 101 }, (_, n) => `${n}`),
  {},
  { a: { b: 1 } },
  { "": 1 },
  Object.fromEntries(Array.from({ length: 51 }, (_, n) => [`k${n}`, n])),
];

for (const { name, api, method, path, schema, valid, accepts } of bodies) {
  const send = (json: unknown) => api.send(method, path, { json });

  // Before the others, which may reach the limit of webhooks.
  test.serial(`${name}: the example of the document is accepted`, async (t) => {
    const { status, text } = await send(valid);
    t.true(status === 200 || status === 201, text);
  });

  test(`${name}: an undocumented field is rejected by name`, async (t) => {
    t.false(accepts({ ...valid, nothing: 1 }));
    isProblem(t, await send({ ...valid, nothing: 1 }), {
      status: 422,
      code: "unknown_field",
      fields: ["nothing"],
    });
  });

  for (const field of schema.required ?? []) {
    test(`${name}: ${field} is required, as documented`, async (t) => {
      const { [field]: _, ...rest } = valid;
      isProblem(t, await send(rest), { status: 422, code: `invalid_${field}`, fields: [field] });
    });
  }

  for (const field of Object.keys(schema.properties)) {
    test(`${name}: values of ${field} that the document forbids are rejected`, async (t) => {
      const wrong = VALUES.filter((value) => !accepts({ ...valid, [field]: value }));
      t.true(wrong.length > 5, "the document constrains it");
      for (const value of wrong) {
        const reply = await send({ ...valid, [field]: value });
        t.true(isRejected(reply), `${JSON.stringify(value).slice(0, 60)}: ${reply.text}`);
        t.true((reply.body.errors ?? []).every((error) => error.field.split(".")[0] === field));
      }
    });
  }

  test(`${name}: any body is accepted only if the document allows it`, async (t) => {
    const value = (example: unknown) =>
      fc.oneof({ weight: 2, arbitrary: fc.constant(example) }, fc.jsonValue({ maxDepth: 2 }));
    const names = Object.keys(schema.properties);
    const anything = fc
      .record(Object.fromEntries(names.map((field) => [field, value(valid[field])])), { requiredKeys: [] })
      // `__proto__` as a key is rejected with 400.
      .filter((body) => !JSON.stringify(body).includes("__proto__"));
    await fc.assert(
      fc.asyncProperty(anything, async (json) => {
        const reply = await send(json);
        const message = `${JSON.stringify(json)} ${reply.status} ${reply.text}`;
        // Some rules are stricter than JSON Schema can express.
        if (accepts(json)) t.true([200, 201, 409, 422].includes(reply.status), message);
        else t.true(isRejected(reply), message);
      }),
      { numRuns: 60 },
    );
  });
}

test("every request body of the document is tested", (t) => {
  t.true(bodies.length >= 6);
  t.deepEqual(
    bodies.filter(({ valid }) => Object.keys(valid).length === 0).map(({ name }) => name),
    [],
  );
});
