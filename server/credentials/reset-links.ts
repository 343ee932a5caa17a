export const RESET_LINK_MS = 60 * 60 * 1000;

export const RESET_PATH = "/auth/reset-password";

export function resetUrl(base: string, token: string): string {
  return `${base}${RESET_PATH}/${token}`;
}
