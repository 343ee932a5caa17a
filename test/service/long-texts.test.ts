import test, { type ExecutionContext } from "ava";
import type { OpenApiDocument } from "../../resources/openapi/document.ts";
import { shareApp } from "../harness/clients/authorization.ts";
import { createTeam } from "../harness/clients/dashboard.ts";
import { connectMcp } from "../harness/clients/mcp.ts";
import { apiFields, headerFields, mcpFields, oauthFields } from "../harness/long-texts/fields.ts";
import { findForms } from "../harness/long-texts/forms.ts";
import { type Field, longRequests } from "../harness/long-texts/texts.ts";
import { bearer } from "../harness/service.ts";

export const stage = "long";

const MAX_MS = 1000;
const HOUR_MS = 60 * 60_000;

const { service, app, user } = await shareApp({ DYNAMIC_REGISTRATION: "stateless" });
const token = await service.token(app);
const client = await connectMcp(`${service.url}/mcp`, token);
const { tools } = await client.listTools();
await client.close();
const document = (await (await fetch(`${service.url}/v1/openapi.json`)).json()) as OpenApiDocument;

const { base, owner } = await createTeam(service, "premium");
await owner.api.send("POST", `${base}/links`, { json: { url: "https://example.com/" } });
const resetLink = `/auth/reset-password/${await service.storage.accounts.createResetToken(user.id, HOUR_MS)}`;
const visited = await findForms(service.url, ["/", "/docs", resetLink], {});
const owned = await findForms(service.url, ["/dashboard"], bearer(owner.token));

/** Fails if a request fails, or if the thread of the service, which is this one, works for too long. */
async function areCheap(t: ExecutionContext, fields: Field[]): Promise<void> {
  const failures: string[] = [];
  for (const [name, { path, init }] of fields.flatMap((field) => [...longRequests(field)])) {
    const before = process.threadCpuUsage();
    const response = await fetch(service.url + path, { redirect: "manual", ...init });
    await response.arrayBuffer();
    const { user, system } = process.threadCpuUsage(before);
    const ms = (user + system) / 1000;
    // With 413 or 431, nothing would read the text.
    const isAnswered = response.status < 500 && response.status !== 413 && response.status !== 431;
    if (ms > MAX_MS || !isAnswered) failures.push(`${name}: ${response.status}, ${ms} ms`);
  }
  t.deepEqual(failures, []);
}

const fields = [
  ...apiFields(document, bearer(token)),
  ...mcpFields(tools, token),
  ...oauthFields(app),
  ...headerFields(),
  ...visited.fields,
  ...owned.fields,
];
for (const [place, some = []] of Object.entries(
  Object.groupBy(fields, ({ name }) => name.split(", ")[0] ?? ""),
)) {
  test.serial(`no long text in ${place} holds a process`, (t) => areCheap(t, some));
}
for (const file of owned.files)
  test.serial(`no file in ${file.name} holds a process`, (t) => areCheap(t, [file]));
