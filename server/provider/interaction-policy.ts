import { interactionPolicy, type KoaContextWithOIDC } from "oidc-provider";
import { requestedScopesOf } from "./consent-scopes.ts";

const { Check, Prompt, base } = interactionPolicy;

/** With `other`, another account must sign in. */
export type AccountChoice = { other: boolean };

export type ConsentDetails = { missingOIDCScope: string[]; missingResourceScopes: Record<string, string[]> };

/** Each authorization creates its own grant, unless an earlier consent covers the request. */
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

/** If so, a grant is not stored without consent yet: no prompt can leave one behind that no code belongs to. */
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

function consentCheck(): interactionPolicy.Check {
  return new Check(
    "consent_missing",
    "consent is required",
    "consent_required",
    ({ oidc }) => !oidc.result?.consent && !oidc.entities.Grant?.jti,
    (ctx): ConsentDetails => {
      const { openid, resources } = requestedScopesOf(ctx);
      return { missingOIDCScope: openid, missingResourceScopes: resources };
    },
  );
}

/** OpenID Connect Core §3.1.2.1. Signing in counts as choosing an account. */
function selectAccountPrompt(): interactionPolicy.Prompt {
  const prompt = new Prompt({ name: "select_account", requestable: true });
  prompt.checks.remove("select_account_prompt");
  prompt.checks.add(
    new Check(
      "select_account_prompt",
      "an account must be chosen",
      "account_selection_required",
      ({ oidc }) => oidc.promptPending("select_account") && !oidc.result?.login,
    ),
  );
  return prompt;
}

function otherAccountCheck(): interactionPolicy.Check {
  return new Check("other_account", "another account must sign in", "login_required", ({ oidc }) => {
    const choice = oidc.result?.select_account as AccountChoice | undefined;
    return choice?.other === true && !oidc.result?.login;
  });
}
