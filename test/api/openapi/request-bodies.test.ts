import test from "ava";
import type { DomainView } from "../../../resources/domains/schema.ts";
import type { JsonSchema } from "../../../resources/openapi/json-schema.ts";
import { type Api, isProblem, newApi, type Reply } from "../../harness/clients/api.ts";
import { contractOf } from "../../harness/clients/contract.ts";
import { ODD_VALUES } from "../../harness/fuzz/odd-values.ts";
import { startTestService } from "../../harness/service.ts";
import { createWebhook } from "../../harness/webhooks.ts";

const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "localhost" });
// Two organizations, so no webhook receives events of links.
const links = await newApi(service);
const webhooks = await newApi(service);
const { document, allows } = await contractOf(service.url);
const link = await links.createLink();
const domains = await newApi(service);
const { body: domain } = await domains.send<DomainView>("POST", "/v1/domains", {
  json: { host: "go.localhost" },
});
const webhook = await createWebhook(webhooks, "http://localhost:1/", ["webhook.test"]);

type Body = {
  name: string;
  api: Api;
  method: string;
  path: string;
  schema: JsonSchema & { properties: Record<string, JsonSchema>; required?: string[] };
  valid: Record<string, unknown>;
  accepts(body: unknown): boolean;
};

/** Removes unique values from an example, so it can be sent repeatedly. */
const withoutSlug = ({ slug, ...rest }: Record<string, unknown> = {}) => rest;

/** Every request body of the document, with the URL of an existing resource. */
const bodies: Body[] = Object.entries(document.paths).flatMap(([template, operations]) =>
  Object.entries(operations).flatMap(([method, { requestBody }]) => {
    const reference = requestBody?.content["application/json"]?.schema as { $ref: string } | undefined;
    if (!reference) return [];
    const schema = document.components.schemas[reference.$ref.split("/").at(-1) as string] as Body["schema"];
    const resources = {
      links: [links, link],
      domains: [domains, domain],
      webhooks: [webhooks, webhook],
    } as const;
    const [, kind] = template.split("/").filter(Boolean);
    const [api, { id }] = resources[kind as keyof typeof resources];
    return {
      name: `${method.toUpperCase()} ${template}`,
      api,
      method: method.toUpperCase(),
      path: template.replace("{id}", id).replace("{external_id}", "by-the-document"),
      schema,
      valid: withoutSlug((schema.examples as Record<string, unknown>[])[0]),
      accepts: (body) => allows(method, template, body),
    };
  }),
);

/** Returns whether a response rejects the whole body, or one item of a bulk request. */
function isRejected({ status, body }: Reply<unknown>): boolean {
  const { results = [] } = (body ?? {}) as { results?: { status: number }[] };
  return status === 422 || results.some((result) => result.status === 422);
}

for (const { name, api, method, path, schema, valid, accepts } of bodies) {
  const send = (json: unknown) => api.send(method, path, { json });

  // Before the others, which may reach the limit of webhooks.
  test.serial(`${name}: the example of the document is accepted`, async (t) => {
    const { status, text } = await send(valid);
    t.true(status === 200 || status === 201, text);
  });

  test(`${name}: an undocumented field is rejected by name`, async (t) => {
    t.false(accepts({ ...valid, nothing: 1 }));
    const unknown = { status: 422, code: "unknown_field", fields: ["nothing"] };
    isProblem(t, await send({ ...valid, nothing: 1 }), unknown);
  });

  const required = schema.required ?? [];
  if (required.length > 0)
    test(`${name}: ${required.join(" and ")} must be sent, as documented`, async (t) => {
      for (const field of required) {
        const { [field]: _, ...rest } = valid;
        isProblem(t, await send(rest), { status: 422, code: `invalid_${field}`, fields: [field] });
      }
    });

  test(`${name}: values that the document forbids are rejected`, async (t) => {
    for (const field of Object.keys(schema.properties)) {
      const wrong = ODD_VALUES.filter((value) => !accepts({ ...valid, [field]: value }));
      t.true(wrong.length > 5, `the document constrains ${field}`);
      for (const value of wrong) {
        const reply = await send({ ...valid, [field]: value });
        t.true(isRejected(reply), `${field} ${JSON.stringify(value).slice(0, 60)}: ${reply.text}`);
        t.true((reply.body.errors ?? []).every((error) => error.field.split(".")[0] === field));
      }
    }
  });
}

test("every request body of the document is tested", (t) => {
  t.true(bodies.length >= 6);
  for (const { valid, name } of bodies) t.true(Object.keys(valid).length > 0, name);
});
