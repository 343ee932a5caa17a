import type { Adapter, AdapterPayload } from "oidc-provider";

export type ModelAdapter = Partial<Adapter> & Pick<Adapter, "find">;

/** Serializes a payload without `jti`, which is the token itself. */
export function toStored(payload: AdapterPayload): string {
  const { jti: _, ...rest } = payload;
  return JSON.stringify(rest);
}
