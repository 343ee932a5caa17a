import type { OpenApiDocument } from "../../resources/openapi/document.ts";
import { connectMcp } from "../harness/clients/mcp.ts";
import { apiFields, headerFields, mcpFields, oauthFields } from "../harness/long-texts/fields.ts";
import { findForms } from "../harness/long-texts/forms.ts";
import { type Field, longRequests, type Sent } from "../harness/long-texts/texts.ts";
import type { Ours } from "./workspace.ts";

type Tenant = { token: string; session: string; client: { id: string; secret: string } };

// As many as are listed; each is then measured again.
const KEPT = 10;

/** Returns the fields of visitors. */
export async function fieldsOfVisitors(origin: string, tenant: Tenant): Promise<Field[]> {
  const { fields } = await findForms(origin, ["/", "/docs"], {});
  const { id, secret } = tenant.client;
  return [...headerFields(), ...oauthFields({ clientId: id, clientSecret: secret }), ...fields];
}

/** Returns the fields of an organization's client and of its owner, with their files. */
export async function fieldsOfTenant(origin: string, { token, session }: Tenant): Promise<Field[]> {
  const authorization = { authorization: `Bearer ${token}` };
  const document = (await (await fetch(`${origin}/v1/openapi.json`)).json()) as OpenApiDocument;
  const client = await connectMcp(`${origin}/mcp`, token);
  const { tools } = await client.listTools();
  await client.close();
  const { fields, files } = await findForms(origin, ["/dashboard"], { authorization: `Bearer ${session}` });
  return [...apiFields(document, authorization), ...mcpFields(tools, token), ...fields, ...files];
}

/**
 * Sends each field with each text once, and returns the requests that took the most processor time. Those with a password
 * would hide all others.
 */
export async function mostExpensive(
  { server, host }: Ours,
  fields: Field[],
): Promise<Record<string, () => Sent>> {
  const measured = fields.filter(({ hasPassword }) => !hasPassword);
  const costs: { name: string; ms: number; sent: Sent }[] = [];
  for (const [name, sent] of measured.flatMap((field) => [...longRequests(field)])) {
    const before = server.cpuMs();
    const response = await fetch(`http://${host}${sent.path}`, { redirect: "manual", ...sent.init });
    await response.arrayBuffer();
    costs.push({ name, ms: server.cpuMs() - before, sent });
  }
  const most = costs.toSorted((a, b) => b.ms - a.ms).slice(0, KEPT);
  return Object.fromEntries(
    await Promise.all(
      most.map(async ({ name, sent }) => {
        const request = await encode(sent);
        return [name, () => request] as const;
      }),
    ),
  );
}

/** Replaces a body by its bytes, which can be handed to another process. */
export async function encode({ path, init }: Sent): Promise<Sent> {
  if (init.body === undefined) return { path, init };
  const body = new Response(init.body);
  const type = body.headers.get("content-type");
  const headers = { ...(type && { "content-type": type }), ...init.headers };
  return { path, init: { ...init, headers, body: await body.arrayBuffer() } };
}
