import type { OpenApiDocument } from "../../resources/openapi/document.ts";
import { connectMcp } from "../harness/clients/mcp.ts";
import { apiFields, headerFields, mcpFields, oauthFields } from "../harness/long-texts/fields.ts";
import { findForms } from "../harness/long-texts/forms.ts";
import { type Field, longRequests, type Sent } from "../harness/long-texts/texts.ts";
import type { Tenant } from "./expensive-requests.ts";
import type { Ours } from "./workspace.ts";

// As many as are listed; each is then measured again.
const KEPT = 10;

export async function fieldsOfVisitors(origin: string, { client }: Tenant): Promise<Field[]> {
  const { fields } = await findForms(origin, ["/", "/docs"], {});
  return [...headerFields(), ...oauthFields(client), ...fields];
}

/** Returns the fields of an organization's client and of its owner, with their files. */
export async function fieldsOfTenant(origin: string, { token, session }: Tenant): Promise<Field[]> {
  const document = (await (await fetch(`${origin}/v1/openapi.json`)).json()) as OpenApiDocument;
  const client = await connectMcp(`${origin}/mcp`, token);
  const { tools } = await client.listTools();
  await client.close();
  const { fields, files } = await findForms(origin, ["/dashboard"], { authorization: `Bearer ${session}` });
  const ofApi = apiFields(document, { authorization: `Bearer ${token}` });
  return [...ofApi, ...mcpFields(tools, token), ...fields, ...files];
}

/**
 * Sends each field with each text once, and returns the requests that took the most processor time. Those with a password
 * would hide all others.
 */
export async function mostExpensive({ server, host }: Ours, fields: Field[]) {
  const costs: { name: string; ms: number; sent: Sent }[] = [];
  for (const [name, sent] of fields.flatMap((field) => (field.hasPassword ? [] : [...longRequests(field)]))) {
    const before = server.cpuMs();
    const response = await fetch(`http://${host}${sent.path}`, { redirect: "manual", ...sent.init });
    await response.arrayBuffer();
    costs.push({ name, ms: server.cpuMs() - before, sent });
  }
  const most = costs.toSorted((a, b) => b.ms - a.ms).slice(0, KEPT);
  return encoded(most.map(({ name, sent }) => [name, sent]));
}

const MB = 2 ** 20;
const columns = Array.from({ length: 100_000 }, (_, index) => `c${index}`);
const keys = Array.from({ length: 60_000 }, (_, index) => `"k${index}":"1"`);
const withMetadata = (json: string) => `[{"url":"https://example.com/","metadata":${json}}]`;

/** Files that are made to be expensive. */
const FILES: Record<string, string> = {
  "5 MB of one letter": "a".repeat(5 * MB),
  "100,000 columns": `url,${columns}\nhttps://example.com/,${",".repeat(99_999)}\n`,
  "60,000 metadata keys": withMetadata(`{${keys}}`),
  "50,000 levels of nesting": withMetadata("[".repeat(50_000) + "]".repeat(50_000)),
};

/** Returns a request that checks each of the files for an organization, without importing links. */
export function uploads({ organizationId, session }: Tenant) {
  const path = `/dashboard/organizations/${organizationId}/links/import`;
  const headers = { authorization: `Bearer ${session}` };
  return encoded(
    Object.entries(FILES).map(([name, content]) => {
      const body = new FormData();
      body.set("dry_run", "true");
      body.set("file", new File([content], "links"));
      return [`file of ${name}`, { path, init: { method: "POST", body, headers } }];
    }),
  );
}

/** Replaces bodies by their bytes, which can be handed to another process. */
async function encoded(requests: [name: string, sent: Sent][]): Promise<Record<string, Sent>> {
  const bytes = requests.map(async ([name, { path, init }]): Promise<[string, Sent]> => {
    if (init.body === undefined) return [name, { path, init }];
    const body = new Response(init.body);
    const type = body.headers.get("content-type");
    const headers = { ...(type && { "content-type": type }), ...init.headers };
    return [name, { path, init: { ...init, headers, body: await body.arrayBuffer() } }];
  });
  return Object.fromEntries(await Promise.all(bytes));
}
