import { setImmediate as turn } from "node:timers/promises";
import test from "ava";
import { sha256 } from "../../../adapters/crypto/hash.ts";
import { openDatabase } from "../../../adapters/database/index.ts";
import { createApp, isAcceptedByApi, runCodeFlow } from "../../harness/clients/oauth.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { startTestService } from "../../harness/service.ts";

export const databases = "all";

const { url, drop } = await createTestDatabase();
const service = await startTestService({
  DATABASE_URL: url,
  ENCRYPTION_KEY: Buffer.alloc(32, 1).toString("base64url"),
});
const { knex, close } = openDatabase(url);
const { app, user } = await createApp(service);
test.after.always(async () => {
  await service.close();
  await close();
  await drop();
});

const keys = (): Promise<string[]> => knex("tokens").orderBy("id_hash").pluck("id_hash");

/** Returns the key of what `issue` stores. */
async function keyOf(issue: () => Promise<unknown>): Promise<string> {
  const before = new Set(await keys());
  await issue();
  const added = (await keys()).filter((key) => !before.has(key));
  if (added.length !== 1) throw new Error(`${added.length} rows`);
  return added[0] as string;
}

test.serial("a token contains the time when it was issued", async (t) => {
  const before = Date.now();
  const { accessToken, refreshToken } = await runCodeFlow(service, app, user);
  for (const token of [await service.token(app), accessToken, refreshToken]) {
    t.regex(token, /^lg[ar]_[0-9a-z]{9}[\w-]{43}[0-9A-Za-z]{6}$/);
    const issued = Number.parseInt(token.slice(4, 13), 36);
    t.true(issued >= before && issued <= Date.now());
  }
});

async function nextMillisecond(): Promise<void> {
  for (const last = Date.now(); Date.now() === last; ) await turn();
}

test.serial("a key is the time and the hash of a token, in the order of issue", async (t) => {
  const issued: string[] = [];
  for (let count = 0; count < 20; count++) {
    let token = "";
    const key = await keyOf(async () => {
      token = await service.token(app);
    });
    t.is(key.length, 43);
    t.is(key, (token.slice(4, 13) + sha256(token)).slice(0, 43));
    issued.push(key);
    // Tokens of one millisecond have no order.
    await nextMillisecond();
  }
  const sorted = (await keys()).filter((key) => issued.includes(key));
  t.deepEqual(sorted, issued, "in the order of the database");
});

test.serial("tokens with swapped or missing times are refused, and so is the stored hash", async (t) => {
  const token = await service.token(app);
  // Tokens of one millisecond begin the same.
  await nextMillisecond();
  const other = await service.token(app);
  const forgeries = [
    token.slice(0, 13) + other.slice(13),
    other.slice(0, 13) + token.slice(13),
    `lga_${token.slice(13)}`,
    sha256(token),
  ];
  for (const forged of forgeries) t.false(await isAcceptedByApi(service, forged), forged);
  t.true(await isAcceptedByApi(service, token));
});
