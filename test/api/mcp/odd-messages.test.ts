import test, { type ExecutionContext } from "ava";
import { shareApi } from "../../harness/clients/authorization.ts";
import { connectMcp, modernRequest, postMcp, type RpcBody, refusalOf } from "../../harness/clients/mcp.ts";
import { toHeaders } from "../../harness/fuzz/headers.ts";
import { ODD_TEXTS, ODD_VALUES } from "../../harness/fuzz/odd-values.ts";
import { bearer } from "../../harness/service.ts";
import { createWebhook } from "../../harness/webhooks.ts";

export const stage = "long";

const INTERNAL_ERROR = -32603;
const HOOK = "http://localhost:1/";

const { service, token, api } = await shareApi({ WEBHOOK_ALLOW_HOSTS: "localhost:1" });
const client = await connectMcp(service.urls.mcp, token);
const { tools } = await client.listTools();
await client.close();

type Sent = ReturnType<typeof modernRequest>;
const sent = (method: string, params: object): Sent => modernRequest(method, params);

/** Fails unless the responses are of JSON-RPC and report no failure of the service. */
async function isAnswered(t: ExecutionContext, message: unknown, headers: Record<string, string>) {
  const reply = await postMcp(service.urls.mcp, message, { ...bearer(token), ...headers });
  const exchange = `${JSON.stringify(message).slice(0, 1000)}: ${reply.status} ${reply.text}`;
  t.true(reply.status < 500, exchange);
  if (reply.headers.get("content-type")?.startsWith("application/problem+json")) return;
  for (const response of reply.messages) {
    const { jsonrpc, result, error } = response as RpcBody & { jsonrpc: string };
    t.is(jsonrpc, "2.0", exchange);
    t.not(result === undefined, error === undefined, exchange);
    // The SDK has this code for invalid parameters, too. Its message then lists what is wrong.
    t.true(error?.code !== INTERNAL_ERROR || /^\[\s*\{/.test(error.message), exchange);
    const refusal = result?.content ? refusalOf(result as { content: unknown }) : undefined;
    t.true(refusal === undefined || refusal.status < 500, exchange);
  }
}

for (const { name, inputSchema } of tools)
  test.serial(`no odd argument makes ${name} fail`, async (t) => {
    const isOfWebhooks = name.includes("webhook");
    const { id } = isOfWebhooks ? await createWebhook(api, `${HOOK}${name}`) : await api.createLink();
    const url = isOfWebhooks ? `${HOOK}new` : "https://example.com/";
    const events = ["link.created"];
    const valid = { id, url, external_id: "x", links: [{ url }], events, delivery_id: "evt_x" };
    const names = Object.keys(inputSchema.properties ?? {});
    const own = Object.fromEntries(Object.entries(valid).filter(([argument]) => names.includes(argument)));
    for (const argument of [...names, "undocumented"])
      for (const value of ODD_VALUES) {
        const { message, headers } = sent("tools/call", { name, arguments: { ...own, [argument]: value } });
        await isAnswered(t, message, headers);
      }
  });

const CALL = sent("tools/call", { name: "whoami", arguments: {} });
const LEGACY = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "whoami", arguments: {} } };

test("no odd member or header makes a message fail", async (t) => {
  for (const value of ODD_VALUES) {
    await isAnswered(t, value, CALL.headers);
    for (const member of ["jsonrpc", "id", "method", "params", "more"]) {
      await isAnswered(t, { ...CALL.message, [member]: value }, CALL.headers);
      await isAnswered(t, { ...LEGACY, [member]: value }, {});
    }
  }
  const own = ["mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id"];
  for (const name of [...own, "accept", "content-type", "last-event-id", "authorization"])
    for (const text of ODD_TEXTS)
      await isAnswered(t, CALL.message, toHeaders({ ...CALL.headers, [name]: text }));
});

const READS: Record<string, (value: unknown) => object> = {
  "tools/list": (cursor) => ({ cursor }),
  "resources/read": (uri) => ({ uri }),
  "prompts/get": (name) => ({ name }),
  "completion/complete": (value) => ({
    ref: { type: "ref/resource", uri: "linkgate://links/{+slug}" },
    argument: { name: "slug", value },
  }),
};

test("no odd address, name or value makes a read fail", async (t) => {
  for (const value of ODD_VALUES) {
    const paths = ["links", "docs"].map((kind) =>
      sent("resources/read", { uri: `linkgate://${kind}/${value}` }),
    );
    const prompt = sent("prompts/get", { name: "weekly_report", arguments: { tag: value } });
    const reference = sent("completion/complete", { ref: value, argument: { name: "slug", value: "" } });
    const reads = Object.entries(READS).map(([method, params]) => sent(method, params(value)));
    for (const { message, headers } of [...paths, prompt, reference, ...reads])
      await isAnswered(t, message, toHeaders(headers));
  }
});
