import type { Check, Result } from "./check.ts";
import { CHECKS } from "./checks/index.ts";
import { Conversation } from "./conversation.ts";
import { NotApplicable, Violation } from "./expect.ts";
import type { Target } from "./target.ts";

/** Runs the checks whose ID starts with one of the prefixes, or all. `onResult` hears each result, and how many come. */
export async function runChecks(
  target: Target,
  prefixes: readonly string[] = [],
  onResult: (result: Result, total: number) => void = () => {},
): Promise<Result[]> {
  const results: Result[] = [];
  const isChosen = ({ id }: Check) =>
    prefixes.length === 0 || prefixes.some((prefix) => id.startsWith(prefix));
  const chosen = CHECKS.filter(isChosen);
  for (const check of chosen) {
    const result = await runCheck(check, target);
    results.push(result);
    onResult(result, chosen.length);
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
