import { errors, type Provider } from "oidc-provider";
import type { AccountStore } from "../../adapters/accounts.ts";
import { DASHBOARD } from "../provider/clients.ts";
import type { Proof } from "../sign-in.ts";

const ACCESS_TOKEN_S = 3600;

/** What a sign-in without a browser yields: RFC 6749 §5.1. */
export type TokenAnswer = {
  access_token: string;
  refresh_token: string;
  token_type: "Bearer";
  expires_in: number;
};

/** Whose token it is, and under which sign-in. */
export type Owner = { accountId: string; grantId: string; signedInAt: number };

/** First-party tokens: of the client `dashboard`, for no organization and no resource, so that they open neither. */
export type FirstPartyTokens = {
  issue(accountId: string, address: string): Promise<TokenAnswer>;
  /** As `issue`; nothing when what was shown for it does not hold any more. */
  issueFor(proof: Proof, address: string): Promise<TokenAnswer | undefined>;
  /** Who stands behind a live access token of ours; nobody for every other one. */
  find(accessToken: string): Promise<Owner | undefined>;
  /** New tokens for a refresh token; nothing for one that is no good. A replay ends the whole family. */
  refresh(refreshToken: string): Promise<TokenAnswer | undefined>;
  /** Ends a sign-in with all its tokens. */
  end(grantId: string): Promise<void>;
};

type Options = { provider: Provider; accounts: AccountStore; base: string };
type Family = { accountId: string; grantId: string; iiat?: number; rotations?: number };

/** Makes them with the library's models, so that `/oauth/revoke` knows them. */
export function createFirstPartyTokens({ provider, accounts, base }: Options): FirstPartyTokens {
  async function mint({ accountId, grantId, ...age }: Family): Promise<TokenAnswer> {
    const client = await provider.Client.find(DASHBOARD);
    if (!client) throw new TypeError("the client of the dashboard is missing");
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

    async issueFor({ accountId, holds }, address) {
      const grantId = await begin(accountId, address);
      if (await holds()) return mint({ accountId, grantId });
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

/** False for one that was used long before this, as another process has just found out. */
async function consume(token: { consume(): Promise<void> }): Promise<boolean> {
  try {
    await token.consume();
    return true;
  } catch (error) {
    if (error instanceof errors.InvalidGrant) return false;
    throw error;
  }
}
