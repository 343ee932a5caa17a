import { interactionPolicy } from "oidc-provider";
import type { AccountChoice } from "../account-choice.ts";

const { Check, Prompt, base } = interactionPolicy;

/**
 * When people are asked: to sign in without a session, to choose an account if the app asks for that, to consent at
 * every authorization. Each consent is a grant of its own, because each is for an organization that was chosen there.
 */
export function prompts(): interactionPolicy.DefaultPolicy {
  const policy = base();
  const [login, consent] = [policy.get("login"), policy.get("consent")];
  if (!login || !consent) throw new TypeError("the library has no login or consent prompt any more");
  login.checks.add(otherAccount());
  policy.add(selectAccount(), 1);
  // It says the same with an error that OIDC Core §3.1.2.6 does not have for this.
  consent.checks.remove("native_client_prompt");
  consent.checks.add(
    new Check("each_time", "consent is asked at every authorization", "consent_required", ({ oidc }) =>
      oidc.result?.consent ? Check.NO_NEED_TO_PROMPT : Check.REQUEST_PROMPT,
    ),
    0,
  );
  return policy;
}

/** `prompt=select_account` (OpenID Connect Core §3.1.2.1): a user who signs in on the way has chosen one. */
function selectAccount(): interactionPolicy.Prompt {
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

/** "Use another account" on the page of the account choice leads to the sign-in form. */
function otherAccount(): interactionPolicy.Check {
  return new Check("other_account", "another account must sign in", "login_required", ({ oidc }) => {
    const choice = oidc.result?.select_account as AccountChoice | undefined;
    return choice?.other && !oidc.result?.login ? Check.REQUEST_PROMPT : Check.NO_NEED_TO_PROMPT;
  });
}
