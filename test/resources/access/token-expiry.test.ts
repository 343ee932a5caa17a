import test from "ava";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { challengeOf } from "../../harness/clients/challenge.ts";
import { advanceClock } from "../../harness/clock.ts";
import { startTestService } from "../../harness/service.ts";

const LIFETIME_MS = 3_600_000;

const service = await startTestService();
const app = await service.createOrganization();
test.after.always(() => service.close());

test("an access token expires after an hour", async (t) => {
  const api = apiAt(service.url, await service.token(app));
  advanceClock(LIFETIME_MS - 10_000);
  t.is((await api.get("/v1/links")).status, 200);
  advanceClock(10_001);
  const reply = await api.get("/v1/links");
  isProblem(t, reply, { status: 401, code: "invalid_token" });
  t.is(challengeOf(reply)?.error, "invalid_token");
  const mcp = await api.send("POST", "/mcp", { json: { jsonrpc: "2.0", id: 1, method: "ping" } });
  isProblem(t, mcp, { status: 401, code: "invalid_token" });
});
