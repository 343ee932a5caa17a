import type { Context } from "koa";
import type { Storage } from "../adapters/index.ts";
import type { Addresses } from "../resources/metadata.ts";
import type { Settings } from "./config.ts";
import type { Counters } from "./counters.ts";
import type { Log } from "./log.ts";
import type { Keys } from "./provider/keys.ts";

/** What the application is joined from. */
export type Parts = {
  settings: Settings;
  addresses: Addresses;
  storage: Storage;
  keys: Keys;
  counters: Counters;
  log: Log;
};

/** Logs what is answered with a 5xx. */
export type OnError = (error: unknown, ctx?: Context) => void;
