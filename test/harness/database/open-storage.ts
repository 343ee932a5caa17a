import test from "ava";
import { createTestStorage } from "./storage.ts";

export * from "./storage.ts";

/**
 * Opens a new database for the tests of a file. It is closed and dropped after them. Call `createTestStorage` where the file
 * awaits something else before its tests: ava starts when the first hook was declared.
 */
export async function openTestStorage(options?: Parameters<typeof createTestStorage>[0]) {
  const storage = await createTestStorage(options);
  test.after.always(() => storage.close());
  return storage;
}
