import { Problem } from "../http/problem.ts";
import { DPOP_ALGS } from "./dpop.ts";
import type { Unauthorized } from "./introspect.ts";

export type Scheme = "Bearer" | "DPoP";

export type Challenges = ReturnType<typeof createChallenges>;

type Parameters = Record<string, string>;

const ALGS = DPOP_ALGS.join(" ");

/** Creates the challenges of a resource (RFC 9110 §11.6.1), which name the URL of its metadata (RFC 9728 §5.1). */
export function createChallenges(metadataUrl: string) {
  function challenge(scheme: Scheme, parameters: Parameters): string {
    const algs: Parameters = scheme === "DPoP" ? { algs: ALGS } : {};
    const all = Object.entries({ ...parameters, ...algs, resource_metadata: metadataUrl });
    return `${scheme} ${all.map(([name, value]) => `${name}="${value}"`).join(", ")}`;
  }

  // RFC 9449 §7.2. Some clients read only the first challenge, so it has all parameters.
  const offerBoth = (parameters: Parameters) => `${challenge("Bearer", parameters)}, DPoP algs="${ALGS}"`;

  return {
    /** @param offered the scopes that the caller should request */
    missingToken(offered: readonly string[]): Problem {
      // RFC 6750 §3.1: no error code without credentials
      return new Problem(401, "missing_token", "Send an access token: Authorization: Bearer <token>.", {
        headers: { "WWW-Authenticate": offerBoth({ scope: offered.join(" ") }) },
      });
    },

    unauthorized({ code, message }: Unauthorized, scheme: Scheme, offered: readonly string[]): Problem {
      const parameters = { error: code, error_description: message, scope: offered.join(" ") };
      const header = scheme === "DPoP" ? challenge(scheme, parameters) : offerBoth(parameters);
      return new Problem(401, code, message, { headers: { "WWW-Authenticate": header } });
    },

    insufficientScope(held: ReadonlySet<string>, required: readonly string[], scheme: Scheme): Problem {
      const scope = [...new Set([...held, ...required])].join(" ");
      const error_description = "The access token lacks a required scope.";
      const header = challenge(scheme, { error: "insufficient_scope", error_description, scope });
      const detail = `This request requires the scope ${required.join(" ")}.`;
      return new Problem(403, "insufficient_scope", detail, { headers: { "WWW-Authenticate": header } });
    },

    invalidRequest(detail: string): Problem {
      const header = challenge("Bearer", { error: "invalid_request", error_description: detail });
      return new Problem(400, "invalid_request", detail, { headers: { "WWW-Authenticate": header } });
    },
  };
}
