import { randomBytes } from "node:crypto";
import { openStorage } from "../../adapters/index.ts";
import { createTestDatabase } from "./database/test-database.ts";
import { addressOf, startServer } from "./program.ts";
import { populate } from "./service.ts";

/** The trace and the span of a caller, and the header that passes them on. */
export const TRACE = "0af7651916cd43dd8448eb211c80319c";
export const PARENT = "b7ad6b7169203331";
export const TRACEPARENT = `00-${TRACE}-${PARENT}-01`;

/** Returns the settings of a server that sends its spans to a collector without delay. */
export function tracedBy(collector: { url: string }): Record<string, string> {
  return {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    OTEL_BSP_SCHEDULE_DELAY: "50",
  };
}

/** Starts a server with a database of its own. The caller stops it, which also drops the database. */
export async function startOnNewDatabase(settings: Record<string, string>) {
  const database = await createTestDatabase();
  const key = randomBytes(32);
  const server = startServer({
    settings: {
      DATABASE_URL: database.url,
      ENCRYPTION_KEY: key.toString("base64url"),
      PORT: "0",
      RATE_LIMIT: "off",
      WEBHOOK_ALLOW_HOSTS: "127.0.0.1",
      ...settings,
    },
  });
  const url = await addressOf(server);
  const storage = openStorage(database.url, key);
  return {
    url,
    server,
    storage,
    ...populate(url, storage),
    async stop() {
      const ending = await server.stop();
      await storage.close();
      await database.drop();
      return ending;
    },
  };
}
