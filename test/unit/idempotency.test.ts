import test from "ava";
import { Problem, toProblem, UNAVAILABLE } from "../../resources/http/problem.ts";
import type { IdempotencyStore, RunOnce, ServiceResponse } from "../../resources/idempotency/run-once.ts";
import { createRunOnce, fingerprintOf, KEY } from "../../resources/idempotency/run-once.ts";

type Begun = Awaited<ReturnType<IdempotencyStore["begin"]>>;

const newAttempt = (done: string[]) => ({
  linkId: (index: number) => `lnk_${index}`,
  keep: async (answer: string) => void done.push(`keep ${answer}`),
  forget: async () => void done.push("forget"),
  release: async () => void done.push("release"),
});

function runWith(begin: () => Promise<Begun>, perform: () => Promise<ServiceResponse>) {
  const caller = { organizationId: "org_1", clientId: "lgc_1" };
  const request = { caller, key: "k", operation: "o", input: {} };
  return createRunOnce({ begin }, () => {})(request as Parameters<RunOnce>[0], perform);
}

/** Runs a request whose key the store knows as `begun`, or not at all. Returns what was done with its attempt. */
async function run(perform: () => Promise<ServiceResponse>, begun?: Begun) {
  const done: string[] = [];
  const begin = async () => begun ?? { attempt: newAttempt(done) };
  const outcome = await runWith(begin, perform).catch((error) => error);
  return { done, outcome };
}

const OUTCOMES: [error: unknown, done: RegExp][] = [
  [new Problem(404, "not_found", "…"), /^keep .*"code":"not_found"/],
  [new Problem(409, "slug_taken", "…"), /^keep .*"code":"slug_taken"/],
  [new Problem(422, "invalid_url", "…"), /^forget$/],
  [new Problem(403, "quota_exceeded", "…"), /^forget$/],
  [new Problem(412, "precondition_failed", "…"), /^forget$/],
  [new Problem(503, "temporarily_unavailable", "…"), /^release$/],
  [new Error("no disk"), /^release$/],
];

test("errors that depend on stored data are kept, others leave the key free, failures release it for a retry", async (t) => {
  for (const [error, expected] of OUTCOMES) {
    const { done, outcome } = await run(() => Promise.reject(error));
    t.is(outcome, error);
    t.is(done.length, 1);
    t.regex(done[0] ?? "", expected);
  }
});

test("an outage asks to retry when another process no longer takes the key for one in use", async (t) => {
  const outage = () => Object.assign(new Error("no database"), { code: UNAVAILABLE });
  const begins = [async () => ({ attempt: newAttempt([]) }), () => Promise.reject(outage())];
  for (const begin of begins) {
    const error = await t.throwsAsync(runWith(begin, () => Promise.reject(outage())));
    t.like(
      toProblem(error, () => {}),
      { status: 503, headers: { "Retry-After": "5" } },
    );
  }
});

test("a response is kept without its secret", async (t) => {
  const response = { status: 201, body: { id: "whk_1", secret: "whsec_x" } };
  const { done, outcome } = await run(async () => response);
  t.deepEqual(outcome, { ...response, isReplayed: false });
  t.deepEqual(done, ['keep {"answer":{"status":201,"body":{"id":"whk_1"}},"omitsSecret":true}']);
});

test("a stored result is replayed, and marked as such, without repeating the operation", async (t) => {
  const never = () => Promise.reject(new Error("performed"));
  const answer = JSON.stringify({ answer: { status: 201, body: { id: "lnk_1" } } });
  const { outcome } = await run(never, { answer });
  t.deepEqual(outcome, { status: 201, body: { id: "lnk_1" }, isReplayed: true, omitsSecret: false });
  const refusal = new Problem(404, "not_found", "The link doesn't exist.").toJSON();
  const refused = await run(never, { answer: JSON.stringify({ refusal }) });
  t.like(refused.outcome, { code: "not_found", headers: { "Idempotency-Replayed": "true" } });
  t.like((await run(never, { refused: "in_use" })).outcome, { status: 409, code: "idempotency_key_in_use" });
  t.like((await run(never, { refused: "reused" })).outcome, { status: 422, code: "idempotency_key_reused" });
});

test("a key has 1 to 255 visible ASCII characters", (t) => {
  for (const key of ["a", "!".repeat(255), '"a"', "~"]) t.regex(key, KEY);
  for (const key of ["", " ", "a b", "a\tb", "ä", "a\n", "x".repeat(256), "a, b"]) t.notRegex(key, KEY);
});

test("a request is recognized by its operation and its input, in any order of fields", (t) => {
  const input = { url: "https://example.com/", tags: ["a", "b"], metadata: { a: 1, b: 2 } };
  const { url, tags } = input;
  const same = fingerprintOf("createLink", input);
  t.is(fingerprintOf("createLink", { metadata: { b: 2, a: 1 }, tags, url }), same);
  const changed = [{ ...input, title: "x" }, { ...input, tags: ["b", "a"] }, { url, tags }, [input]];
  const others = [...changed, {}, null, "x"];
  for (const other of others) t.not(fingerprintOf("createLink", other), same, JSON.stringify(other));
  t.not(fingerprintOf("createLinks", input), same);
});
