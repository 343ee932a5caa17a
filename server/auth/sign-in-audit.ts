import type { Context } from "koa";
import { LRUCache } from "lru-cache";
import { normalizeUsername } from "../../adapters/accounts/sign-in-failures.ts";
import type { AccountStore } from "../../adapters/accounts/store.ts";
import type { MemberEventStore } from "../../adapters/events/member-events.ts";
import { ANONYMOUS } from "../../resources/events/types.ts";
import { Problem } from "../../resources/http/problem.ts";
import { isPossibleUsername } from "../credentials/names.ts";
import type { OnError } from "../http/error-pages.ts";
import type { VerifyCode } from "./second-factors/verify-code.ts";
import type { VerifyPassword } from "./verify-password.ts";

const FAILURE_TYPES = [
  "member.sign_in_failed",
  "member.sign_in_throttled",
  "member.second_factor_failed",
] as const;
type FailureType = (typeof FAILURE_TYPES)[number];
/** The name may be unknown; the id is known after the right password. */
type Subject = { username: string } | { userId: string };
type Failures = {
  type: FailureType;
  subject: Subject;
  address: string;
  attempts: number;
  /** Both entries are in order if this one waits. */
  earlier?: Promise<void> | undefined;
};

const HOUR_MS = 60 * 60 * 1000;
// A flood with more usernames than this records some hours early.
const MAX_ACCOUNTS = 10_000;

/**
 * Anyone can fail to sign in as someone else, so per account, hour and process, the first failed attempt makes an
 * entry, and all others a second one at the end of the hour. Nothing waits for them, because that would tell which
 * usernames exist.
 */
export function createSignInAudit(
  accounts: Pick<AccountStore, "findByUsername">,
  memberEvents: MemberEventStore,
  onError: OnError,
) {
  const pending = new Set<Promise<void>>();
  const hours = new LRUCache<string, Failures>({
    max: MAX_ACCOUNTS,
    ttl: HOUR_MS,
    ttlAutopurge: true,
    perf: Date,
    // Otherwise a time that was read counts for another millisecond.
    ttlResolution: 0,
    dispose: (failures) => void record(failures),
  });

  function record(failures: Failures): Promise<void> | undefined {
    if (failures.attempts === 0) return;
    const done = store(failures)
      .catch(onError)
      .finally(() => pending.delete(done));
    pending.add(done);
    return done;
  }

  async function store({ type, subject, address, attempts, earlier }: Failures): Promise<void> {
    await earlier;
    const userId =
      "userId" in subject ? subject.userId : (await accounts.findByUsername(subject.username))?.id;
    if (userId) await memberEvents.record({ ...ANONYMOUS, address }, { userId, type, attempts });
  }

  function count(type: FailureType, subject: Subject, address: string): void {
    if ("username" in subject && !isPossibleUsername(subject.username)) return;
    const key = keyOf(type, subject);
    const hour = hours.get(key);
    if (hour) return void Object.assign(hour, { attempts: hour.attempts + 1, address });
    const earlier = record({ type, subject, address, attempts: 1 });
    hours.set(key, { type, subject, address, attempts: 0, earlier });
  }

  /** Resolves to what `verify` does. If that refuses the attempt, counts it. */
  async function counting<Result>(
    { ip }: Context,
    type: FailureType,
    subject: Subject,
    verify: () => Promise<Result>,
  ): Promise<Result> {
    try {
      return await verify();
    } catch (error) {
      const status = error instanceof Problem ? error.status : 500;
      if (status < 500) count(status === 429 ? "member.sign_in_throttled" : type, subject, ip);
      throw error;
    }
  }

  return {
    verifyPassword:
      (verifyPassword: VerifyPassword): VerifyPassword =>
      async (ctx, username, password) => {
        const verify = () => verifyPassword(ctx, username, password);
        const proof = await counting(ctx, "member.sign_in_failed", { username }, verify);
        ctx.state.signIn = { username, methods: ["password"] };
        return proof;
      },

    verifyCode:
      (verifyCode: VerifyCode): VerifyCode =>
      (ctx, pending, codes) => {
        const verify = () => verifyCode(ctx, pending, codes);
        return counting(ctx, "member.second_factor_failed", { userId: pending.proof.accountId }, verify);
      },

    passkeyFailed: (ctx: Context, userId: string) => count("member.second_factor_failed", { userId }, ctx.ip),

    async signedIn(ctx: Context, userId: string): Promise<void> {
      const { username = "", methods = [], isAgain = false } = ctx.state.signIn ?? {};
      // First, so that the failed attempts stand before the successful one.
      for (const type of FAILURE_TYPES) {
        hours.delete(keyOf(type, { username }));
        hours.delete(keyOf(type, { userId }));
      }
      await Promise.all(pending);
      const type = isAgain ? "member.reauthenticated" : "member.signed_in";
      await memberEvents.record({ id: userId, address: ctx.ip }, { userId, type, methods });
    },

    /** Records the failed attempts that aren't recorded yet. */
    async close(): Promise<void> {
      hours.clear();
      await Promise.all(pending);
    },
  };
}

function keyOf(type: FailureType, subject: Subject): string {
  if ("userId" in subject) return `${type} id ${subject.userId}`;
  return `${type} name ${normalizeUsername(subject.username)}`;
}
