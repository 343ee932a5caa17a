import test from "ava";
import { apiAt } from "../../harness/clients/api.ts";
import { codeFor } from "../../harness/clients/authorization.ts";
import { authorizeUrl, createApp } from "../../harness/clients/authorization-request.ts";
import { postAsClient, redeemCode, refresh } from "../../harness/clients/oauth.ts";
import { sendRaw } from "../../harness/clients/raw.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { growth, readMetrics } from "../../harness/metrics.ts";
import { postForm, startTestService } from "../../harness/service.ts";

// MCP has an address of its own, so its path isn't the usual one.
const service = await startTestService({ MCP_URL: "http://localhost:1/agents/links" });
const limited = await startTestService({ RATE_LIMIT: "on", TRUST_PROXY: "1" });
const { app, user } = await createApp(service);

const COUNTED = /^linkgate_(grants|introspections|refusals|rate_limited)_total/;

/** Returns what a run adds to the counters of grants, introspections, refusals and rate limits. */
async function counted(run: () => Promise<unknown>, url = service.url): Promise<Record<string, number>> {
  const before = await readMetrics(url);
  await run();
  return growth(before, await readMetrics(url), COUNTED);
}

test.serial("grants are counted by their type, and introspections by their result", async (t) => {
  const code = await codeFor(service, app, user);
  const counts = await counted(async () => {
    const token = await service.token(app);
    const { body } = await redeemCode(service, app, code);
    await refresh(service, app, String(body.refresh_token));
    for (const one of [token, "lga_unknown", "lga_unknown"])
      await postAsClient(service, "introspect", app, { token: one });
  });
  t.deepEqual(counts, {
    'linkgate_grants_total{grant_type="client_credentials"}': 1,
    'linkgate_grants_total{grant_type="authorization_code"}': 1,
    'linkgate_grants_total{grant_type="refresh_token"}': 1,
    'linkgate_introspections_total{result="active"}': 1,
    'linkgate_introspections_total{result="inactive"}': 2,
  });
});

test.serial("refusals are counted by endpoint and error code, at any address of MCP", async (t) => {
  const wrong = { ...app, clientSecret: "lgs_wrong" };
  const token = await service.token(app, { scope: "links:read" });
  const refusals = await counted(async () => {
    await postAsClient(service, "token", wrong, { grant_type: "client_credentials" });
    await postAsClient(service, "token", app, { grant_type: "made_up" });
    await redeemCode(service, app, "made-up");
    await postAsClient(service, "introspect", wrong, { token });
    await postAsClient(service, "par", app, { response_type: "made_up" });
    await apiAt(service.url).get("/v1/links");
    await apiAt(service.url, "lga_unknown").get("/v1/links");
    await apiAt(service.url, token).send("POST", "/v1/links", { json: { url: "https://example.com/" } });
    const headers = ["host", "localhost:1", "content-type", "application/json"];
    await sendRaw(service.url, "/agents/links", { method: "POST", headers, body: "{}" });
  });
  t.deepEqual(refusals, {
    'linkgate_refusals_total{endpoint="token",error="invalid_client"}': 1,
    'linkgate_refusals_total{endpoint="token",error="unsupported_grant_type"}': 1,
    'linkgate_refusals_total{endpoint="token",error="invalid_grant"}': 1,
    'linkgate_refusals_total{endpoint="introspection",error="invalid_client"}': 1,
    'linkgate_refusals_total{endpoint="pushed_authorization_request",error="invalid_request"}': 1,
    'linkgate_refusals_total{endpoint="api",error="missing_token"}': 1,
    'linkgate_refusals_total{endpoint="api",error="invalid_token"}': 1,
    'linkgate_refusals_total{endpoint="api",error="insufficient_scope"}': 1,
    'linkgate_refusals_total{endpoint="mcp",error="missing_token"}': 1,
  });
});

test.serial("refused authorization requests are counted, with or without a redirect", async (t) => {
  const refusals = await counted(async () => {
    await fetch(authorizeUrl(service, app, { redirect_uri: "https://evil.test/" }));
    await fetch(authorizeUrl(service, app, { prompt: "none" }), { redirect: "manual" });
    await fetch(authorizeUrl(service, app, { code_challenge: undefined }), { redirect: "manual" });
    await codeFor(service, app, user, { browser: new TestBrowser(service.url) });
  });
  t.deepEqual(refusals, {
    'linkgate_refusals_total{endpoint="authorization",error="invalid_redirect_uri"}': 1,
    'linkgate_refusals_total{endpoint="authorization",error="login_required"}': 1,
    'linkgate_refusals_total{endpoint="authorization",error="invalid_request"}': 1,
  });
});

test.serial("what clients make up creates no labels", async (t) => {
  await postAsClient(service, "token", app, { grant_type: "made_up_type", error: "made_up_error" });
  await fetch(authorizeUrl(service, app, { response_type: "made_up_type" }), { redirect: "manual" });
  t.false([...(await readMetrics(service.url)).keys()].some((key) => key.includes("made_up")));
});

test.serial("refusals by rate limits are counted by limit", async (t) => {
  const headers = { "x-forwarded-for": "2001:db8::1" };
  const refusals = await counted(async () => {
    const guess = { grant_type: "client_credentials", client_id: "lgc_unknown", client_secret: "lgs_wrong" };
    for (let times = 0; times < 301; times++) await postForm(`${limited.url}/oauth/token`, guess, headers);
    const signIn = { username: "unknown", password: "a wrong password" };
    for (let times = 0; times < 6; times++)
      await apiAt(limited.url).send("POST", "/auth/login", { json: signIn, headers });
  }, limited.url);
  t.deepEqual(refusals, {
    'linkgate_refusals_total{endpoint="token",error="invalid_client"}': 300,
    'linkgate_refusals_total{endpoint="token",error="slow_down"}': 1,
    'linkgate_rate_limited_total{limit="oauth:failures"}': 1,
    'linkgate_rate_limited_total{limit="sign-in:pair"}': 1,
  });
});
