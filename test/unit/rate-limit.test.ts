import test from "ava";
import type { Context } from "koa";
import type { ActiveToken } from "../../resources/access/introspect.ts";
import { type CallCounter, createRateLimit } from "../../resources/access/rate-limit.ts";
import { Problem } from "../../resources/http/problem.ts";
import { nextStepOf } from "../../resources/http/problem-codes.ts";

/** Counts one more call, after which `calls` were made; returns the headers. */
async function count(limit: "address" | "growth" | "premium", calls: number) {
  const headers: Record<string, string> = {};
  const refused: string[] = [];
  const answer = async () => ({ calls, seconds: 42 });
  const onRefusal = (name: string) => void refused.push(name);
  const counter: CallCounter = { ofAddress: answer, ofOrganization: answer, refused: onRefusal };
  const ctx = {
    ip: "203.0.113.9",
    set: (name: string, value: string) => void Object.assign(headers, { [name]: value }),
  } as unknown as Context;
  const limits = createRateLimit(counter);
  const counted =
    limit === "address"
      ? limits.address(ctx, async () => {})
      : limits.organization(ctx, { organizationId: "org_1", plan: limit } as ActiveToken, 1);
  const problem = await counted.catch((error: Problem) => error);
  return { headers, refused, problem };
}

for (const [name, policy, limit] of [
  ["address", "address", 6000],
  ["growth", "organization", 600],
  ["premium", "organization", 3000],
] as const)
  test(`${limit} calls per minute are allowed by the limit of ${name}, and one more isn't`, async (t) => {
    const last = await count(name, limit);
    t.is(last.problem, undefined);
    const RateLimit = `"${policy}";r=0;t=42`;
    t.deepEqual(last.headers, { "RateLimit-Policy": `"${policy}";q=${limit};w=60`, RateLimit });
    const { problem, headers, refused } = await count(name, limit + 1);
    t.true(problem instanceof Problem);
    t.like(problem, { status: 429, code: "rate_limited", headers: { "Retry-After": "42" } });
    t.is(headers.RateLimit, RateLimit);
    t.deepEqual(refused, [policy]);
    t.is(nextStepOf(problem as Problem), "Wait 42 seconds, then retry the same request.");
  });

test("without a counter, nothing is limited", async (t) => {
  const { address, organization } = createRateLimit(undefined);
  const ctx = { set: () => t.fail("a header was set") } as unknown as Context;
  await address(ctx, async () => t.pass());
  await organization(ctx, { plan: "growth" } as ActiveToken, 1_000_000);
});
