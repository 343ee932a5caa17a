import { randomBytes } from "node:crypto";
import type { ExecutionContext } from "ava";
import { Webhook } from "standardwebhooks";
import { apiAt } from "./clients/api.ts";
import { runCodeFlow } from "./clients/authorization.ts";
import { createApp } from "./clients/authorization-request.ts";
import { browserOf } from "./clients/dashboard.ts";
import { isAcceptedByApi, refresh } from "./clients/oauth.ts";
import { freePort } from "./program.ts";
import { startTestService } from "./service.ts";
import { createWebhook, startReceiver } from "./webhooks.ts";

/** Settings of a service that can be started again at the same address, on another database. */
export async function settingsFor(databaseUrl: string): Promise<Record<string, string>> {
  const port = await freePort();
  return {
    DATABASE_URL: databaseUrl,
    ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
    PORT: String(port),
    BASE_URL: `http://localhost:${port}`,
    WEBHOOK_ALLOW_HOSTS: "127.0.0.1",
  };
}

/** Starts a service, has users and apps use it, stops it, and returns a function that uses what they got. */
export async function inhabit(settings: Record<string, string>) {
  const receiver = await startReceiver();
  const service = await startTestService(settings);
  const { app, user } = await createApp(service);
  const tokens = await runCodeFlow(service, app, user);
  const token = await service.token(app);
  const { browser } = await browserOf(service, user);
  const api = apiAt(service.url, token);
  const link = await api.createLink({ url: "https://example.com/kept", tags: ["Ünïcode ?", "two"] });
  await apiAt(service.url).get(`/${link.slug}`);
  const webhook = await createWebhook(api, receiver.url("/hook"), ["webhook.test"]);
  await service.close();

  /** Uses every credential at a service on a copy of the database. Without its key, sessions and webhooks are lost. */
  async function useAll(t: ExecutionContext, changed: Record<string, string>, { hasKey = true } = {}) {
    const copy = await startTestService({ ...settings, ...changed });
    try {
      t.true(await isAcceptedByApi(copy, token), "client credentials token");
      t.true(await isAcceptedByApi(copy, tokens.accessToken), "access token");
      t.is((await refresh(copy, app, tokens.refreshToken)).status, 200, "refresh token");
      t.true(await isAcceptedByApi(copy, await copy.token(app)), "client secret");
      const redirect = await fetch(`${copy.url}/${link.slug}`, { redirect: "manual" });
      t.is(redirect.headers.get("location"), "https://example.com/kept", "link");
      t.true((await api.get(`/v1/links/${link.id}`)).body.clicks >= 1, "clicks");
      const me = await browser.open(`${copy.url}/dashboard/me`, { headers: { accept: "application/json" } });
      t.is(me.status, hasKey ? 200 : 401, "session cookie");
      const logs = await copy.storage.verifyAuditLogs();
      const areIntact = logs.every(({ ok }) => ok);
      t.true(areIntact, "audit logs");
      if (!hasKey) return void t.is((await api.get(`/v1/webhooks/${webhook.id}`)).status, 404);
      const before = receiver.received("/hook").length;
      await api.send("POST", `/v1/webhooks/${webhook.id}/test`);
      const delivery = (await receiver.waitFor("/hook", before + 1)).at(-1);
      t.notThrows(() => new Webhook(webhook.secret).verify(delivery?.text ?? "", delivery?.headers ?? {}));
    } finally {
      await copy.close();
    }
  }
  return { useAll, token, app };
}
