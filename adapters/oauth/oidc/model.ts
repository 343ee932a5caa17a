import type { Adapter, AdapterPayload } from "oidc-provider";

/** The part of the library's storage contract that one of its models uses. */
export type ModelAdapter = Partial<Adapter> & Pick<Adapter, "find">;

/** The text that is stored: without `jti`, which is the secret itself. */
export function toStored(payload: AdapterPayload): string {
  const { jti: _, ...rest } = payload;
  return JSON.stringify(rest);
}
