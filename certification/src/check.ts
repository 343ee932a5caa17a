import type { Conversation, Exchange } from "./conversation.ts";

/** `warning`: a recommendation (SHOULD) is not followed. `skipped`: the server doesn't offer what the check is about. */
export type Verdict = "passed" | "failed" | "warning" | "skipped";

export type Check = {
  /** Unique, such as `token-no-store`. */
  id: string;
  title: string;
  /** The requirement, such as `RFC 6749 §5.1`. */
  clause: string;
  /** Whether the clause recommends (SHOULD). */
  isRecommended?: boolean;
  /** Throws Violation or NotApplicable. */
  run(conversation: Conversation): Promise<void>;
};

export type Result = Pick<Check, "id" | "title" | "clause"> & {
  verdict: Verdict;
  /** Why it didn't pass. */
  detail?: string;
  exchanges: Exchange[];
};
