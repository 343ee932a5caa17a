import { apiAt } from "./clients/api.ts";
import { createApp } from "./clients/oauth.ts";
import { startTestService } from "./service.ts";

/** Shares a service that has an organization. `api` has a token of it, and `anonymous` has none. */
export async function shareApi(settings: Record<string, string> = {}) {
  const service = await startTestService(settings);
  const app = await service.createOrganization();
  const token = await service.token(app);
  const { url } = service;
  return { service, app, token, api: apiAt(url, token), anonymous: apiAt(url) };
}

/** Shares a service that has an app, and a user who owns another organization; and `other` ones. */
export async function shareApp(settings: Record<string, string> = {}, redirectUris?: string[]) {
  const service = await startTestService(settings);
  const created = await createApp(service, redirectUris);
  return { service, ...created, other: await createApp(service) };
}
