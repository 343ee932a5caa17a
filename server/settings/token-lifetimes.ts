const HOUR = 60 * 60;
const DAY = 24 * HOUR;

/** In seconds. */
export const ACCESS_TOKEN_LIFETIME = HOUR;
/** RFC 9700 §4.14.2: counts from the consent, in seconds. */
export const ABSOLUTE_LIFETIME = 90 * DAY;
/** Grants outlive their last access token. In seconds. */
export const GRANT_LIFETIME = ABSOLUTE_LIFETIME + ACCESS_TOKEN_LIFETIME;
/** In seconds. */
export const ID_TOKEN_LIFETIME = HOUR;
/** OWASP ASVS 5.0 V7.3.2: sessions expire however they are used. In seconds. */
export const SESSION_LIFETIME = 30 * DAY;
