import assert from "node:assert/strict";
import test from "ava";
import fc from "fast-check";
import type { Reply } from "../../harness/clients/api.ts";
import { contractOf } from "../../harness/clients/contract.ts";
import { type ApiRequest, apiRequests } from "../../harness/fuzz/api-requests.ts";
import { createObjects, noteChange, type Objects } from "../../harness/fuzz/objects.ts";
import { SEED } from "../../harness/rounds.ts";
import { startWebhookService } from "../../harness/webhook-service.ts";

export const stage = "long";

// Long enough for a request to depend on earlier ones, short enough to find out on which.
const LENGTH = 50;
const SEQUENCES = 20;
// Rare operations may need several rounds to succeed once.
const MAX_ROUNDS = 10;
// A request is repeated once in a while, for its idempotency key to be seen again.
const AGAIN_ONE_IN = 20;

const { service, receiver } = await startWebhookService();
const { document, allows } = await contractOf(service.url);

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
async function send(objects: Objects, { operationId, method, path, headers, body }: ApiRequest) {
  const reply = await objects.api.send(method, path, { headers, ...(body !== undefined && { body }) });
  const exchange = `${method} ${path} ${body?.slice(0, 1000)} was answered with ${reply.status} ${reply.text}`;
  assert.ok(reply.status < 500, exchange);
  if (body !== undefined && !hasError(reply)) assert.ok(isAllowed(method, path, body), exchange);
  if (reply.status >= 400) return;
  successful.add(operationId);
  const [, cursor] = /"next_cursor":"([\w-]+)"/.exec(reply.text) ?? [];
  if (cursor) objects.cursors.set(operationId, cursor);
  if (method === "DELETE") noteChange(objects, "", path.split("/").at(-1));
  else if (method !== "GET") noteChange(objects, reply.text);
}

const generators = apiRequests(document);

/** Sends random requests, each of which may name what the earlier ones have created. */
async function sendSequence(seed: number): Promise<void> {
  const objects = await createObjects(service, receiver);
  const draw = <T>(values: fc.Arbitrary<T>, step: number) =>
    fc.sample(values, { seed: seed * LENGTH + step, numRuns: 1 })[0] as T;
  for (let step = 0; step < LENGTH; step++) {
    const request = draw(draw(fc.constantFrom(...generators), step)(objects), step);
    await send(objects, request);
    if (step % AGAIN_ONE_IN === 0) await send(objects, request);
  }
}

test("random requests, valid and nearly valid, are answered as the document says", async (t) => {
  const missed = () => operations.filter((name) => !successful.has(name));
  for (let round = 0; round === 0 || (round < MAX_ROUNDS && missed().length > 0); round++)
    for (let index = 0; index < SEQUENCES; index++) await sendSequence(SEED + round * SEQUENCES + index);
  t.deepEqual(missed(), [], "each operation has succeeded");
});
