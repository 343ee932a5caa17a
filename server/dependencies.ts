import type { Storage } from "../adapters/index.ts";
import type { AppPolicyCheck } from "../adapters/oauth/app-policy.ts";
import type { PublicUrls } from "../resources/access/resource-metadata.ts";
import type { ResolveTxt } from "../resources/domains/service.ts";
import type { GuardedFetch } from "../resources/outbound/guarded-fetch.ts";
import type { Keys } from "./keys/shared-keys.ts";
import type { Log } from "./log.ts";
import type { ProcessMetrics } from "./observability/metrics.ts";
import type { Tracing } from "./observability/tracing.ts";
import type { RateLimitStore } from "./rate-limits/store.ts";
import type { Settings } from "./settings/config.ts";

export type Dependencies = {
  settings: Settings;
  urls: PublicUrls;
  storage: Storage;
  appPolicyCheck: AppPolicyCheck;
  keys: Keys;
  rateLimitStore: RateLimitStore;
  log: Log;
  metrics: ProcessMetrics;
  /** Only if OpenTelemetry is configured. */
  tracing?: Tracing | undefined;
  /** Fetches documents that requests name, such as those of clients, from the public internet. */
  fetch: GuardedFetch;
  /** Fetches documents that the operator or an organization named, from the public internet. */
  fetchConfigured: GuardedFetch;
  /** Reads the DNS records that verify domains. */
  resolveTxt: ResolveTxt;
  /** The provider's host may be private, so what others name must not be fetched there. */
  fetchFromProvider: GuardedFetch;
};
