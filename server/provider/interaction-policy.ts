import { interactionPolicy, type KoaContextWithOIDC } from "oidc-provider";
import { requestedScopesOf } from "./consent-scopes.ts";

const { Check, Prompt, base } = interactionPolicy;

/** The result of the page on which a user chooses an account. With `other`, another account must sign in. */
export type AccountChoice = { other: boolean };

/** What the consent page needs to know about the request. */
export type ConsentDetails = {
  missingOIDCScope: string[];
  missingResourceScopes: Record<string, string[]>;
};

/**
 * Decides when users are prompted: to sign in if there is no session, to choose an account if the client requests it,
 * and to consent unless an earlier consent covers the request. Each authorization creates its own grant.
 */
export function prompts(): interactionPolicy.DefaultPolicy {
  const policy = base();
  const [login, consent] = [policy.get("login"), policy.get("consent")];
  if (!login || !consent) throw new TypeError("oidc-provider no longer has a login and a consent prompt");
  login.checks.add(otherAccountCheck());
  policy.add(selectAccountPrompt(), 1);
  // It prompts in the same cases, with an error that OpenID Connect Core §3.1.2.6 doesn't define for them.
  consent.checks.remove("native_client_prompt");
  consent.checks.add(consentCheck(), 0);
  return policy;
}

/**
 * Returns whether a request has a prompt before that for consent. A grant that is stored without asking for consent is
 * then not stored yet: no prompt can leave a grant behind that no code belongs to.
 */
export async function isPromptedBeforeConsent(
  policy: interactionPolicy.DefaultPolicy,
  ctx: KoaContextWithOIDC,
): Promise<boolean> {
  for (const { name, checks } of policy) {
    if (name === "consent") return false;
    for (const { check } of checks) if (await check(ctx)) return true;
  }
  return false;
}

/** Asks for consent unless it was just given, or the request has a grant because it is remembered. */
function consentCheck(): interactionPolicy.Check {
  return new Check(
    "consent_missing",
    "consent is required",
    "consent_required",
    ({ oidc }) =>
      oidc.result?.consent || oidc.entities.Grant?.jti ? Check.NO_NEED_TO_PROMPT : Check.REQUEST_PROMPT,
    (ctx): ConsentDetails => {
      const { openid, resources } = requestedScopesOf(ctx);
      return { missingOIDCScope: openid, missingResourceScopes: resources };
    },
  );
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
