import test from "ava";
import { postRegistration } from "../../harness/clients/registration.ts";
import { startTestService } from "../../harness/service.ts";

const LIMIT = 3000;
const CONCURRENT = 20;

const service = await startTestService({
  DYNAMIC_REGISTRATION: "stateless",
  RATE_LIMIT: "on",
  TRUST_PROXY: "1",
});
test.after.always(() => service.close());

const post = (address: string) =>
  postRegistration(service, { redirect_uris: ["http://127.0.0.1/callback"] }, { "x-forwarded-for": address });

test("registrations are limited per network, like other requests of clients", async (t) => {
  const first = "198.51.100.1";
  for (let sent = 0; sent < LIMIT; sent += CONCURRENT) {
    await Promise.all(Array.from({ length: CONCURRENT }, () => post(first)));
  }
  const limited = await post(first);
  t.is(limited.status, 429);
  t.is(limited.body.error, "temporarily_unavailable");
  t.true(Number(limited.headers.get("retry-after")) >= 1);
  t.is((await post("203.0.113.1")).status, 201);
});
