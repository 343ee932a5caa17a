import test from "ava";
import type { GuardedFetch } from "../../resources/outbound/guarded-fetch.ts";
import { createFetchDocument, InvalidDocument } from "../../server/clients/metadata-documents.ts";

const ANY = { accepted: "any", addresses: new Set<string>() } as const;

test("a host and a network get one request per document, and twenty at a time", async (t) => {
  const requests: string[] = [];
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  const fetch: GuardedFetch = async (url) => {
    requests.push(url);
    await answered;
    return Response.json({ client_id: url, redirect_uris: ["https://docs.example/callback"] });
  };
  let network = "203.0.113";
  const fetchDocument = createFetchDocument(ANY, fetch, () => network);
  const urls = Array.from({ length: 20 }, (_, index) => `https://docs.example/${index}`);
  const pending = urls.flatMap((url) => [fetchDocument(url), fetchDocument(url)]);
  const refused = { instanceOf: InvalidDocument, message: /^too many documents are being fetched/ };
  await t.throwsAsync(fetchDocument("https://other.example/"), refused, "another host of the same network");
  network = "198.51.100";
  await t.throwsAsync(fetchDocument("https://docs.example/next"), refused, "the same host, elsewhere");
  t.deepEqual(requests, urls);
  answer();
  for (const { status } of await Promise.all(pending)) t.is(status, 200);
  t.is((await fetchDocument("https://docs.example/next")).status, 200, "which isn't remembered");
});
