import { interactionPolicy } from "oidc-provider";

const { Check, base } = interactionPolicy;

/**
 * When people are asked: to sign in without a session, to consent at every authorization. Each consent is a grant of
 * its own, because each is for an organization that was chosen there.
 */
export function prompts(): interactionPolicy.DefaultPolicy {
  const policy = base();
  const consent = policy.get("consent");
  if (!consent) throw new TypeError("the library has no consent prompt any more");
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
