import type { Storage } from "../../../adapters/index.ts";
import { until } from "../webhooks.ts";

/** Purges expired rows. The service of a test does so as well, now and then, and two never do at the same time. */
export function purgeExpired(storage: Pick<Storage, "purgeExpired">) {
  return until(() => storage.purgeExpired());
}
