import assert from "node:assert/strict";
import test from "ava";
import type { Reply } from "../../harness/clients/api.ts";
import { contractOf } from "../../harness/clients/contract.ts";
import { type ApiRequest, apiRequests } from "../../harness/fuzz/api-requests.ts";
import { type Prepared, prepareObjects } from "../../harness/fuzz/prepared-objects.ts";
import { sendSequences } from "../../harness/fuzz/sequences.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";

export const stage = "long";

const REQUESTS = 1000;

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: new URL(receiver.url("/")).host });
const prepare = await prepareObjects(service, receiver);
const { document, allows } = await contractOf(service.url);
test.after.always(async () => {
  await service.close();
  await receiver.close();
});

const operations = Object.values(document.paths).flatMap((methods) =>
  Object.values(methods).map(({ operationId }) => operationId),
);
const successful = new Set<string>();

/** Returns whether a response reports an error, be it of one item of many. */
function hasError({ status, body }: Reply<unknown>): boolean {
  const { results = [] } = (body ?? {}) as { results?: { status: number }[] };
  return status >= 400 || results.some((result) => result.status >= 400);
}

function isAllowed(method: string, path: string, body: string): boolean {
  try {
    return allows(method, path, JSON.parse(body));
  } catch {
    return false;
  }
}

/** Sends a request. Fails if the response is not as documented, or is a success although the body is not allowed. */
async function send({ api, known }: Prepared, request: ApiRequest): Promise<void> {
  const { operationId, method } = request;
  const [unresolved = ""] = request.path.split("?");
  const address = known.resolve(unresolved);
  const path = address + known.resolve(request.path.slice(unresolved.length), address);
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, known.resolve(value, address)]),
  );
  const body = request.body === undefined ? undefined : known.resolve(request.body);
  const reply = await api.send(method, path, { headers, ...(body !== undefined && { body }) });

  assert.ok(reply.status < 500, `${method} ${path} was answered with ${reply.status}: ${reply.text}`);
  if (body !== undefined && !hasError(reply))
    assert.ok(isAllowed(method, path, body), `${method} ${path} accepted ${body}: ${reply.text}`);
  if (reply.status >= 400) return;
  successful.add(operationId);
  const tag = reply.headers.get("etag");
  if (tag) known.setTag(reply.headers.get("location") ?? address, tag);
  known.setCursor(address, reply.text);
  if (method === "DELETE") known.remove(address.split("/").at(-1) as string);
  else if (method !== "GET") known.add(reply.text);
}

test("random requests, valid and nearly valid, are answered as the document says", async (t) => {
  const missed = () => operations.filter((name) => !successful.has(name));
  const start = async () => {
    const prepared = await prepare();
    return (request: ApiRequest) => send(prepared, request);
  };
  await sendSequences(apiRequests(document), REQUESTS, start, () => missed().length === 0);
  t.deepEqual(missed(), [], "each operation has succeeded");
});
