import type { Storage } from "../../adapters/index.ts";
import { populate, type TestService } from "./service.ts";

/** A setting of the server and its commands that makes them a newer version: one with more migrations. */
export const NEWER = { NODE_OPTIONS: `--import=${import.meta.resolve("./newer-version.ts")}` };

/** A server of another process. */
export function serviceAt(url: string, storage: Storage): TestService {
  const urls = { base: url, api: `${url}/v1`, mcp: `${url}/mcp`, mcpRead: `${url}/mcp/read`, short: url };
  return { url, urls, storage, close: async () => {}, ...populate(url, storage) };
}
