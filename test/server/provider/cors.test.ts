import test from "ava";
import { basic } from "../../harness/clients/oauth.ts";
import { postForm, startTestService } from "../../harness/service.ts";

const ALLOWED = "https://console.example.com";
const service = await startTestService({ ALLOWED_ORIGINS: ALLOWED });
const app = await service.createOrganization();
test.after.always(() => service.close());

const REQUEST = { grant_type: "client_credentials" };
const ask = (origin: string) => postForm(`${service.url}/oauth/token`, REQUEST, { ...basic(app), origin });

test("allowed origins and the service's own can call the token endpoint", async (t) => {
  for (const origin of [ALLOWED, service.url]) {
    const { status, headers } = await ask(origin);
    t.is(status, 200);
    t.is(headers.get("access-control-allow-origin"), origin);
    t.is(headers.get("access-control-allow-credentials"), null);
  }
});

for (const origin of [
  "https://evil.example",
  "null",
  `${ALLOWED}.evil.example`,
  ALLOWED.replace("https", "http"),
  `${ALLOWED}:8443`,
  "https://example.com",
]) {
  test(`scripts on ${origin} can't read the token endpoint's response`, async (t) => {
    const { status, headers } = await ask(origin);
    t.is(headers.get("access-control-allow-origin"), null);
    t.not(status, 200);
  });
}
