import test from "ava";
import { FLAWS } from "./flaws.ts";
import { checkExample } from "./suite.ts";

export const stage = "long";

/** What is true of oidc-provider and the resource of the example. */
const FOUND: Record<string, string> = {
  // An unknown scope is left out of the token, and the response doesn't say so.
  "token-unknown-scope": "failed",
  // The resource uses the token in the header, and ignores the one in the URL.
  "resource-two-methods": "warning",
  "resource-metadata-challenge": "warning",
};

test("of the example server, nothing is reported but what is true", async (t) => {
  const results = await checkExample();
  const found = results.filter(({ verdict }) => verdict === "failed" || verdict === "warning");
  t.deepEqual(
    Object.fromEntries(found.map(({ id, verdict }) => [id, verdict])),
    FOUND,
    JSON.stringify(found),
  );
  t.true(results.length >= 150);
  t.is(new Set(results.map(({ id }) => id)).size, results.length);
  for (const { clause, title } of results) t.truthy(clause && title);
});

test("a grant that the server doesn't offer is not reported", async (t) => {
  const results = await checkExample({
    what: "no client credentials",
    found: "",
    configure: ({ clients = [], features }) => {
      if (features?.clientCredentials) features.clientCredentials.enabled = false;
      for (const client of clients) client.grant_types = ["authorization_code", "refresh_token"];
    },
  });
  const found = results.filter(({ verdict }) => verdict === "failed" || verdict === "warning");
  t.deepEqual(
    found.map(({ id }) => id),
    ["resource-metadata-challenge"],
    JSON.stringify(found),
  );
  t.true(results.some(({ detail }) => detail === "no client_credentials grant"));
});

for (const flaw of FLAWS) {
  test(`a flaw is found: ${flaw.what}`, async (t) => {
    const results = await checkExample(flaw, [flaw.found]);
    const result = results.find(({ id }) => id === flaw.found);
    t.true(result?.verdict === "failed" || result?.verdict === "warning", JSON.stringify(result));
    t.truthy(result?.detail);
    t.true(
      (result?.exchanges.length ?? 0) > 0 ||
        flaw.found.startsWith("metadata") ||
        flaw.found.endsWith("latency"),
    );
  });
}

test("at least 20 flaws are tried, each of another check", (t) => {
  t.true(FLAWS.length >= 20);
  t.is(new Set(FLAWS.map(({ found }) => found)).size, FLAWS.length);
});
