import { errors, type Provider } from "oidc-provider";
import type { AccountStore } from "../../adapters/accounts/store.ts";
import type { ReplayedGrantStore } from "../../adapters/oauth/oidc/replays.ts";
import { DASHBOARD } from "../clients/client-metadata.ts";
import type { Method } from "../provider/sessions.ts";
import { isMultiFactor } from "../provider/sessions.ts";
import { isStillValid } from "./complete-sign-in.ts";
import { passwordProof, type SignInProof } from "./sign-in-proof.ts";

const ACCESS_TOKEN_S = 3600;

/** The token response of a login by a program: RFC 6749 §5.1. */
export type TokenAnswer = {
  access_token: string;
  refresh_token: string;
  token_type: "Bearer";
  expires_in: number;
};

/** The user and the grant of a token. `signedInAt` is in epoch milliseconds. */
export type Owner = {
  accountId: string;
  grantId: string;
  signedInAt: number;
  methods: Method[];
  isMultiFactor: boolean;
};

/**
 * First-party tokens belong to the client `dashboard`. They have no organization and no resource, so neither the API nor
 * MCP accepts them.
 */
export type FirstPartyTokens = {
  /** Issues tokens to a user who has just registered. */
  issue(accountId: string, address: string): Promise<TokenAnswer>;
  /** Issues tokens to a user who has signed in; undefined if the password has been changed since it was verified. */
  issueFor(proof: SignInProof, address: string): Promise<TokenAnswer | undefined>;
  /** Returns the owner of a valid first-party access token; undefined for every other token. */
  find(accessToken: string): Promise<Owner | undefined>;
  /** Rotates a refresh token; undefined if it is invalid. A replay revokes the whole family and is recorded. */
  refresh(refreshToken: string, address: string): Promise<TokenAnswer | undefined>;
  /** Revokes a grant and all its tokens. */
  end(grantId: string): Promise<void>;
};

type Options = {
  provider: Provider;
  accounts: AccountStore;
  replayedGrants: ReplayedGrantStore;
  base: string;
};
/** A first-party grant, with how the user signed in. */
type SignInGrant = { iat?: number; methods?: Method[]; amr?: string[] };
type Family = { accountId: string; grantId: string; iiat?: number; rotations?: number };

/** Creates the tokens with oidc-provider's models, so `/oauth/revoke` accepts them. */
export function createFirstPartyTokens({
  provider,
  accounts,
  replayedGrants,
  base,
}: Options): FirstPartyTokens {
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

  function begin({ accountId, methods, amr }: SignInProof, address: string): Promise<string> {
    const grant = new provider.Grant({ accountId, clientId: DASHBOARD });
    return Object.assign(grant, { address, methods, amr }).save();
  }

  async function end(grantId: string) {
    await (await provider.Grant.find(grantId))?.destroy();
  }

  return {
    end,

    async issue(accountId, address) {
      return mint({ accountId, grantId: await begin(passwordProof(accountId), address) });
    },

    async issueFor(proof, address) {
      const { accountId } = proof;
      const grantId = await begin(proof, address);
      if (await isStillValid(accounts, proof)) return mint({ accountId, grantId });
      await end(grantId);
      return undefined;
    },

    async find(value) {
      const token = await provider.AccessToken.find(value);
      if (token?.clientId !== DASHBOARD) return undefined;
      const grant: SignInGrant | undefined = await provider.Grant.find(token.grantId);
      if (!grant) return undefined;
      const { accountId, grantId } = token;
      const { iat = 0, methods = [] } = grant;
      return {
        accountId,
        grantId,
        signedInAt: iat * 1000,
        methods,
        isMultiFactor: isMultiFactor(grant),
      };
    },

    async refresh(value, address) {
      const token = await provider.RefreshToken.find(value, { ignoreExpiration: true });
      const { accountId, grantId, iiat, rotations = 0 } = token ?? {};
      if (token?.clientId !== DASHBOARD || token.isExpired || !accountId || !grantId) return undefined;
      const account = await accounts.find(accountId);
      if (!account || account.disabled) return undefined;
      if (token.consumed) {
        await replayedGrants.revoke(grantId, "refresh_token", address); // RFC 9700 §4.14.2
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
