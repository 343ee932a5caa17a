import { errors, type Provider } from "oidc-provider";
import type { Storage } from "../../adapters/index.ts";
import { DASHBOARD } from "../clients/client-metadata.ts";
import { isMultiFactor, type Method } from "../provider/seams/session-model.ts";
import { isStillValid } from "./complete-sign-in.ts";
import { passwordProof, type SignInProof } from "./sign-in-proof.ts";

const ACCESS_TOKEN_S = 3600;

type SignInGrant = { iat?: number; methods?: Method[]; amr?: string[] };
type Family = { accountId: string; grantId: string; iiat?: number; rotations?: number };

/** Tokens of the client `dashboard` have no organization or resource, so neither the API nor MCP accepts them. */
export function createFirstPartyTokens(
  provider: Provider,
  { accounts, grants }: Pick<Storage, "accounts" | "grants">,
  base: string,
) {
  async function mint({ accountId, grantId, ...age }: Family) {
    const client = await provider.Client.find(DASHBOARD);
    if (!client) throw new TypeError("the dashboard client is missing");
    const common = { client, accountId, grantId, scope: "", gty: "password" };
    const refreshToken = new provider.RefreshToken({ ...common, ...age, resource: `${base}/dashboard` });
    const accessToken = new provider.AccessToken(common);
    return {
      access_token: await accessToken.save(),
      refresh_token: await refreshToken.save(),
      token_type: "Bearer",
      expires_in: ACCESS_TOKEN_S,
    };
  }

  function begin({ accountId, methods, amr }: SignInProof, address: string): Promise<string> {
    const grant = new provider.Grant({ accountId, clientId: DASHBOARD });
    return Object.assign(grant, { address, methods, amr }).save();
  }

  async function end(grantId: string): Promise<void> {
    await (await provider.Grant.find(grantId))?.destroy();
  }

  return {
    end,

    async issue(accountId: string, address: string) {
      return mint({ accountId, grantId: await begin(passwordProof(accountId), address) });
    },

    /** Resolves to undefined if the password has been changed since it was verified. */
    async issueFor(proof: SignInProof, address: string) {
      const { accountId } = proof;
      const grantId = await begin(proof, address);
      if (await isStillValid(accounts, proof)) return mint({ accountId, grantId });
      await end(grantId);
      return undefined;
    },

    /** Resolves to undefined for every other token. */
    async find(value: string) {
      const token = await provider.AccessToken.find(value);
      if (token?.clientId !== DASHBOARD) return undefined;
      const grant: SignInGrant | undefined = await provider.Grant.find(token.grantId);
      if (!grant) return undefined;
      const { accountId, grantId: sessionId } = token;
      const { iat = 0, methods = [] } = grant;
      return {
        means: "token" as const,
        accountId,
        sessionId,
        signedInAt: iat * 1000,
        methods,
        isMultiFactor: isMultiFactor(grant),
      };
    },

    /** Resolves to undefined for an invalid token. A replay revokes the whole family and is recorded. */
    async refresh(value: string, address: string) {
      const token = await provider.RefreshToken.find(value, { ignoreExpiration: true });
      const { accountId, grantId, iiat, rotations = 0 } = token ?? {};
      if (token?.clientId !== DASHBOARD || token.isExpired || !accountId || !grantId) return undefined;
      const account = await accounts.find(accountId);
      if (!account || account.disabled) return undefined;
      if (token.consumed) {
        await grants.revokeReused(grantId, "refresh_token", address); // RFC 9700 §4.14.2
        return undefined;
      }
      try {
        await token.consume();
      } catch (error) {
        // Another request has used the token, and its retry period has ended.
        if (error instanceof errors.InvalidGrant) return undefined;
        throw error;
      }
      return mint({ accountId, grantId, rotations: rotations + 1, ...(iiat && { iiat }) });
    },
  };
}
