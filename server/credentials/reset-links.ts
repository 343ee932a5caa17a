/** How long a password reset link is valid. */
export const RESET_LINK_MS = 60 * 60 * 1000;

export const RESET_PATH = "/auth/reset-password";

/** Returns the URL of a reset link. */
export function resetUrl(base: string, token: string): string {
  return `${base}${RESET_PATH}/${token}`;
}
