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
/** A new key is published longer than this before it signs. In seconds. */
export const KEY_SET_MAX_AGE = 300;
/** How often a server looks for new keys. A key must be known for longer than this before it is used. */
export const KEY_REFRESH_MS = 5_000;
/** Until then, every server has new keys, even one that is late. */
export const KEY_SPREAD_MS = 2 * KEY_REFRESH_MS;
/** Until then, every client has fetched a new public key. */
export const KEY_PUBLISH_MS = 3 * KEY_SET_MAX_AGE * 1000;
/** OWASP ASVS 5.0 V7.3.2: sessions expire however they are used. In seconds. */
export const SESSION_LIFETIME = 30 * DAY;
