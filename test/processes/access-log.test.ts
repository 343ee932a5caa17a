import { randomBytes } from "node:crypto";
import test from "ava";
import { createTestDatabase } from "../harness/database/test-database.ts";
import { addressOf, startServer, stopPrograms } from "../harness/program.ts";

test.after.always(stopPrograms);

/** Returns the status of each request that a server logs. */
async function loggedStatuses(settings: Record<string, string>): Promise<number[]> {
  const database = await createTestDatabase();
  const ENCRYPTION_KEY = randomBytes(32).toString("base64url");
  const server = startServer({
    settings: { DATABASE_URL: database.url, ENCRYPTION_KEY, PORT: "0", ...settings },
  });
  const url = await addressOf(server);
  for (const path of ["/oauth/jwks", "/oauth/jwks", "/no-such-link", "/v1/links"]) await fetch(url + path);
  const { stdout } = await server.stop();
  await database.drop();
  return stdout
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => msg === "request")
    .map(({ status }) => status);
}

test("every request is logged by default", async (t) => {
  t.deepEqual(await loggedStatuses({}), [200, 200, 404, 401]);
});

test("with ACCESS_LOG_SAMPLE=0, only requests that fail are logged", async (t) => {
  t.deepEqual(await loggedStatuses({ ACCESS_LOG_SAMPLE: "0" }), [404, 401]);
});
