import { startServiceWithDatabase } from "./service.ts";
import { openObserved } from "./storage.ts";

export async function startWithStorage(own: Record<string, string> = {}) {
  const started = await startServiceWithDatabase(own);
  const { DATABASE_URL, ENCRYPTION_KEY } = started.settings;
  const second = openObserved(DATABASE_URL, Buffer.from(ENCRYPTION_KEY, "base64url"));
  return { ...started, second };
}
