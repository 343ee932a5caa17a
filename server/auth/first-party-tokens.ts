import { errors, type Provider } from "oidc-provider";
import type { AccountStore } from "../../adapters/accounts/store.ts";
import { DASHBOARD } from "../clients/client-metadata.ts";
import type { PasswordProof } from "./verify-password.ts";

const ACCESS_TOKEN_S = 3600;

/** The token response of a login by a program: RFC 6749 §5.1. */
export type TokenAnswer = {
  access_token: string;
  refresh_token: string;
  token_type: "Bearer";
  expires_in: number;
};

/** The user and the grant of a token. `signedInAt` is in epoch milliseconds. */
export type Owner = { accountId: string; grantId: string; signedInAt: number };

/**
 * First-party tokens belong to the client `dashboard`. They have no organization and no resource, so neither the API nor
 * MCP accepts them.
 */
export type FirstPartyTokens = {
  issue(accountId: string, address: string): Promise<TokenAnswer>;
  /** Like `issue`, but undefined if the password has been changed since it was verified. */
  issueFor(proof: PasswordProof, address: string): Promise<TokenAnswer | undefined>;
  /** Returns the owner of a valid first-party access token; undefined for every other token. */
  find(accessToken: string): Promise<Owner | undefined>;
  /** Rotates a refresh token; undefined if it is invalid. A replay revokes the whole family. */
  refresh(refreshToken: string): Promise<TokenAnswer | undefined>;
  /** Revokes a grant and all its tokens. */
  end(grantId: string): Promise<void>;
};

type Options = { provider: Provider; accounts: AccountStore; base: string };
type Family = { accountId: string; grantId: string; iiat?: number; rotations?: number };

/** Creates the tokens with oidc-provider's models, so `/oauth/revoke` accepts them. */
export function createFirstPartyTokens({ provider, accounts, base }: Options): FirstPartyTokens {
  async function mint({ accountId, grantId, ...age }: Family): Promise<TokenAnswer> {
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

  function begin(accountId: string, address: string): Promise<string> {
    const grant = new provider.Grant({ accountId, clientId: DASHBOARD });
    return Object.assign(grant, { address }).save();
  }

  async function end(grantId: string) {
    await (await provider.Grant.find(grantId))?.destroy();
  }

  return {
    end,

    issue: async (accountId, address) => mint({ accountId, grantId: await begin(accountId, address) }),

    async issueFor({ accountId, isCurrent }, address) {
      const grantId = await begin(accountId, address);
      if (await isCurrent()) return mint({ accountId, grantId });
      await end(grantId);
      return undefined;
    },

    async find(value) {
      const token = await provider.AccessToken.find(value);
      if (token?.clientId !== DASHBOARD) return undefined;
      const grant = await provider.Grant.find(token.grantId);
      const { accountId, grantId } = token;
      return grant && { accountId, grantId, signedInAt: (grant.iat ?? 0) * 1000 };
    },

    async refresh(value) {
      const token = await provider.RefreshToken.find(value, { ignoreExpiration: true });
      const { accountId, grantId, iiat, rotations = 0 } = token ?? {};
      if (token?.clientId !== DASHBOARD || token.isExpired || !accountId || !grantId) return undefined;
      const account = await accounts.find(accountId);
      if (!account || account.disabled) return undefined;
      if (token.consumed) {
        await end(grantId); // RFC 9700 §4.14.2
        return undefined;
      }
      if (!(await consume(token))) return undefined;
      return mint({ accountId, grantId, rotations: rotations + 1, ...(iiat && { iiat }) });
    },
  };
}

/** Marks a token as used; returns false if another request has used it and its retry period has ended. */
async function consume(token: { consume(): Promise<void> }): Promise<boolean> {
  try {
    await token.consume();
    return true;
  } catch (error) {
    if (error instanceof errors.InvalidGrant) return false;
    throw error;
  }
}
