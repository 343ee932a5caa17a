/** The reference that more than one authentication method was used: RFC 8176 §2. */
export const MULTIPLE_FACTORS = "mfa";

/** Returns whether more than one factor was used. An identity provider says so by `mfa`. */
export function isMultiFactor({ amr }: { amr?: readonly string[] | undefined }): boolean {
  return amr?.includes(MULTIPLE_FACTORS) ?? false;
}
