import type { CountTest } from "../../resources/webhooks/service.ts";
import { count } from "./counters.ts";
import type { RateLimitStore } from "./store.ts";

// All webhooks that a plan allows can be created in one go, and some be tested again.
const PER_ORGANIZATION = 30;
const ORGANIZATION_S = 10 * 60;
const PER_MINUTE = 60;

/** Test events go to endpoints that never accepted one, which may belong to a third party. */
export function createTestCounter(store: RateLimitStore): CountTest {
  const organizations = store.create("webhook-tests:organization", PER_ORGANIZATION, {
    seconds: ORGANIZATION_S,
  });
  const hosts = store.create("webhook-tests:host", PER_MINUTE);
  return async (organizationId, url) => {
    // Not the port: all of them may be one server.
    const { hostname } = new URL(url);
    return (await count(organizations, `${organizationId} ${hostname}`)) || count(hosts, hostname);
  };
}
