import test from "ava";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { challengeOf } from "../../harness/clients/challenge.ts";
import { advanceClock } from "../../harness/clock.ts";
import { startTestService } from "../../harness/service.ts";

// `oauth/switches` has the changes that end or limit access, for every part of the service.
export const databases = "all";

const LIFETIME_MS = 3_600_000;

test("an access token expires after an hour", async (t) => {
  const service = await startTestService();
  const api = apiAt(service.url, await service.token(await service.createOrganization()));
  advanceClock(LIFETIME_MS - 10_000);
  t.is((await api.get("/v1/links")).status, 200);
  advanceClock(10_001);
  const reply = await api.get("/v1/links");
  isProblem(t, reply, { status: 401, code: "invalid_token" });
  t.is(challengeOf(reply)?.error, "invalid_token");
  isProblem(t, await api.send("POST", "/mcp"), { status: 401, code: "invalid_token" });
});
