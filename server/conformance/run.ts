import { type Check, NotApplicable, type Result, Violation } from "./check.ts";
import { CHECKS } from "./checks/index.ts";
import { Conversation } from "./conversation.ts";
import type { Target } from "./target.ts";

/** Runs all checks one after the other. `onResult` hears each result with the number of all checks. */
export async function runChecks(
  target: Target,
  onResult: (result: Result, total: number) => void,
): Promise<Result[]> {
  const results: Result[] = [];
  for (const check of CHECKS) {
    const result = await runCheck(check, target);
    results.push(result);
    onResult(result, CHECKS.length);
  }
  return results;
}

async function runCheck({ id, title, clause, isRecommended, run }: Check, target: Target): Promise<Result> {
  const conversation = new Conversation(target);
  const { exchanges } = conversation;
  const common = { id, title, clause, exchanges };
  try {
    await run(conversation);
    return { ...common, verdict: "passed" };
  } catch (error) {
    const detail = (error as Error).message;
    if (error instanceof NotApplicable) return { ...common, verdict: "skipped", detail };
    if (error instanceof Violation)
      return { ...common, verdict: isRecommended ? "warning" : "failed", detail };
    // What the server sends may be anything, so an unexpected error is a finding as well.
    return { ...common, verdict: "failed", detail: `the check could not be completed: ${detail}` };
  }
}
