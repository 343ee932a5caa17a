import { interactionPolicy } from "oidc-provider";

const { Check, Prompt, base } = interactionPolicy;

/** The result of the page on which a user chooses an account. With `other`, another account must sign in. */
export type AccountChoice = { other: boolean };

/**
 * Decides when users are prompted: to sign in if there is no session, to choose an account if the client requests it,
 * and to consent at every authorization. Each consent creates its own grant, for the organization chosen with it.
 */
export function prompts(): interactionPolicy.DefaultPolicy {
  const policy = base();
  const [login, consent] = [policy.get("login"), policy.get("consent")];
  if (!login || !consent) throw new TypeError("oidc-provider no longer has a login and a consent prompt");
  login.checks.add(otherAccountCheck());
  policy.add(selectAccountPrompt(), 1);
  // It prompts in the same cases, with an error that OpenID Connect Core §3.1.2.6 doesn't define for them.
  consent.checks.remove("native_client_prompt");
  consent.checks.add(
    new Check("each_time", "consent is required at every authorization", "consent_required", ({ oidc }) =>
      oidc.result?.consent ? Check.NO_NEED_TO_PROMPT : Check.REQUEST_PROMPT,
    ),
    0,
  );
  return policy;
}

/** Handles `prompt=select_account` (OpenID Connect Core §3.1.2.1). Signing in counts as choosing an account. */
function selectAccountPrompt(): interactionPolicy.Prompt {
  const prompt = new Prompt({ name: "select_account", requestable: true });
  prompt.checks.remove("select_account_prompt");
  prompt.checks.add(
    new Check(
      "select_account_prompt",
      "an account must be chosen",
      "account_selection_required",
      ({ oidc }) =>
        oidc.promptPending("select_account") && !oidc.result?.login
          ? Check.REQUEST_PROMPT
          : Check.NO_NEED_TO_PROMPT,
    ),
  );
  return prompt;
}

/** Shows the sign-in form after "Use another account" on the account choice page. */
function otherAccountCheck(): interactionPolicy.Check {
  return new Check("other_account", "another account must sign in", "login_required", ({ oidc }) => {
    const choice = oidc.result?.select_account as AccountChoice | undefined;
    return choice?.other && !oidc.result?.login ? Check.REQUEST_PROMPT : Check.NO_NEED_TO_PROMPT;
  });
}
