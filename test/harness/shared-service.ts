import test from "ava";
import { apiAt } from "./clients/api.ts";
import { createApp } from "./clients/oauth.ts";
import { type OwnService, startTestService } from "./service.ts";

/** Starts a service for the tests of a file, which are declared next: it is closed after them. */
export async function shareService(...options: Parameters<typeof startTestService>): Promise<OwnService> {
  return closedAfterTests(await startTestService(...options), {}).service;
}

/** Shares a service that has an organization. `api` has a token of it, and `anonymous` has none. */
export async function shareApi(settings: Record<string, string> = {}) {
  const service = await startTestService(settings);
  const app = await service.createOrganization();
  const token = await service.token(app);
  const { url } = service;
  return closedAfterTests(service, { app, token, api: apiAt(url, token), anonymous: apiAt(url) });
}

/** Shares a service that has an app, and a user who owns another organization; and `other` ones. */
export async function shareApp(settings: Record<string, string> = {}, redirectUris?: string[]) {
  const service = await startTestService(settings);
  const created = await createApp(service, redirectUris);
  return closedAfterTests(service, { ...created, other: await createApp(service) });
}

/** AVA has no hook that is declared before a file waits for anything else. */
function closedAfterTests<Shared>(service: OwnService, shared: Shared) {
  test.after.always(() => service.close());
  return { service, ...shared };
}
