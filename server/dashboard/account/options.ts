import type { AuthOptions } from "../../auth/auth-options.ts";
import type { RouteOptions } from "../route.ts";

/** `relyingParty` is undefined if `BASE_URL` is an IP address. */
export type AccountParts = Pick<AuthOptions, "identityProvider" | "relyingParty" | "transactions">;
export type AccountOptions = RouteOptions & AccountParts;
