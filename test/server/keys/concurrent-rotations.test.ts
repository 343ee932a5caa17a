import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import { openStorage } from "../../../adapters/index.ts";
import { readKeyFile } from "../../../server/keys/encryption-keys.ts";
import { loadStoredKeys } from "../../../server/keys/shared-keys.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { runCommand, stopPrograms } from "../../harness/program.ts";

test.after.always(stopPrograms);

test("of concurrent changes of the encryption keys one succeeds, and no stored secret is lost", async (t) => {
  const database = await createTestDatabase();
  const folder = mkdtempSync(path.join(tmpdir(), "linkgate-rotations-"));
  const file = path.join(folder, "keys");
  writeFileSync(file, randomBytes(32).toString("base64url"), { mode: 0o600 });
  const before = openStorage(database.url, readKeyFile(file));
  await before.migrate();
  const stored = await loadStoredKeys(before.keys);
  await before.close();

  const settings = { DATABASE_URL: database.url, ENCRYPTION_KEY_FILE: file };
  const rotate = () => runCommand(["keys", "rotate", "encryption", "--json"], { settings });
  const results = await Promise.all([rotate(), rotate()]);
  const refused = results.filter(({ code }) => code !== 0);
  t.is(refused.length, 1);
  t.is(JSON.parse(refused[0]?.stderr ?? "{}").error.code, "keys_busy");
  t.is(readKeyFile(file).length, 2);
  const after = openStorage(database.url, readKeyFile(file));
  t.deepEqual(await loadStoredKeys(after.keys), stored);
  await after.close();
  await database.drop();
  rmSync(folder, { recursive: true });
});
