import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { Storage } from "../../adapters/index.ts";
import { notFound, Problem } from "../../resources/problem.ts";
import { validate } from "../../resources/validate.ts";
import { again, answerDone, showPage } from "../dashboard/answers.ts";
import type { Passwords } from "../passwords.ts";
import type { SignIn } from "../sign-in.ts";
import { accountPage } from "../views/dashboard/account.ts";
import { hashOrRefuse, passwordChangeOf } from "./fields.ts";
import type { IdentityProvider } from "./identity-provider.ts";
import { prefersHtml, readInput, textOf } from "./input.ts";
import { linkingRoutes } from "./linking.ts";
import { exportOf, showAccount, showSignIn } from "./own-data.ts";
import { type Person, requireRecentSignIn } from "./person.ts";
import type { Sessions } from "./sessions.ts";
import type { Transactions } from "./transactions.ts";

type Options = {
  storage: Pick<Storage, "accounts" | "identities" | "signIns" | "departures" | "organizations" | "grants">;
  passwords: Passwords;
  signIn: SignIn;
  sessions: Sessions;
  identityProvider: IdentityProvider | undefined;
  transactions: Transactions;
};

const PATH = "/dashboard/account";

/** The own account: where the person is signed in, the password, the data, the end of it. */
export function accountRoutes(router: Router, options: Options): void {
  const { storage, passwords, signIn, sessions, identityProvider, transactions } = options;
  const { signIns, departures } = storage;
  const personOf = (ctx: Context): Person => ctx.state.person;

  async function show(ctx: Context, error?: string) {
    const person = personOf(ctx);
    const account = await showAccount(storage, person);
    ctx.state.memberships = account.organizations;
    const body = accountPage({ account, person, provider: identityProvider?.name });
    showPage(ctx, { title: "Your account", error }, body);
  }

  /** The password of the person who is signed in, asked for once more; guesses are counted as at the sign-in. */
  async function checkPassword(ctx: Context, password: string) {
    const result = await signIn(ctx, personOf(ctx).username, password);
    if (!("error" in result)) return;
    if (result.status === 503) throw new Problem(503, "busy", result.error);
    if (result.status === 429) throw new Problem(429, "too_many_requests", result.error);
    throw wrongPassword();
  }

  const { identities } = storage;
  linkingRoutes(router, { identities, provider: identityProvider, transactions, show });

  router.get(PATH, async (ctx) => {
    if (prefersHtml(ctx)) return show(ctx);
    ctx.body = await showAccount(storage, personOf(ctx));
  });

  router.get(`${PATH}/export`, async (ctx) => {
    ctx.set("Content-Disposition", 'attachment; filename="linkgate-account.json"');
    ctx.body = await exportOf(storage, personOf(ctx));
  });

  router.post(`${PATH}/password`, again(show), async (ctx) => {
    const person = personOf(ctx);
    const input = await readInput(ctx);
    const account = await storage.accounts.find(person.id);
    // Somebody who signs in elsewhere only has none to show.
    if (account?.passwordHash === null) requireRecentSignIn(ctx, PATH);
    else await checkPassword(ctx, textOf(input.current_password));
    const { new_password } = validate(passwordChangeOf(person.username), input);
    const currentHash = account?.passwordHash ?? null;
    const newHash = await hashOrRefuse(passwords, new_password);
    // The password was changed elsewhere in the meantime, perhaps to lock this session out.
    if (!(await signIns.changePassword({ currentHash, newHash }, person.signInId, person.by)))
      throw wrongPassword();
    if (person.means === "session") await sessions.begin(ctx, person.id);
    answerDone(ctx, { to: PATH, done: "password-changed" });
  });

  router.get(`${PATH}/sessions`, async (ctx) => {
    if (prefersHtml(ctx)) return ctx.redirect(PATH);
    const person = personOf(ctx);
    ctx.body = { data: (await signIns.ofUser(person.id)).map((one) => showSignIn(one, person)) };
  });

  const endOthers = async (ctx: Context) => {
    const { signInId, by } = personOf(ctx);
    await signIns.endOthers(signInId, by);
    answerDone(ctx, { to: PATH, done: "sessions-ended" });
  };
  router.delete(`${PATH}/sessions`, endOthers);
  router.post(`${PATH}/sessions/delete`, endOthers);

  const endOne = async (ctx: Context) => {
    if (!(await signIns.end(ctx.params.id as string, personOf(ctx).by))) throw notFound("session");
    answerDone(ctx, { to: PATH, done: "session-ended" });
  };
  router.delete(`${PATH}/sessions/:id`, endOne);
  router.post(`${PATH}/sessions/:id/delete`, endOne);

  const remove = async (ctx: Context) => {
    const password = textOf((await readInput(ctx)).password);
    if (password) await checkPassword(ctx, password);
    else requireRecentSignIn(ctx, PATH);
    const needed = await departures.depart(personOf(ctx).by);
    if (needed.length > 0) throw lastOwner(needed);
    if (personOf(ctx).means === "session") await sessions.end(ctx);
    answerDone(ctx, { to: "/auth/login" });
  };
  router.delete(PATH, remove);
  router.post(`${PATH}/delete`, again(show), remove);
}

function wrongPassword(): Problem {
  return new Problem(422, "invalid_current_password", "The current password is wrong.", {
    errors: [{ field: "current_password", message: "The current password is wrong." }],
  });
}

function lastOwner(organizations: { name: string }[]): Problem {
  const names = organizations.map(({ name }) => name).join(", ");
  return new Problem(
    409,
    "last_owner",
    `You are the last owner of ${names}: make somebody else an owner first, or delete it.`,
  );
}
