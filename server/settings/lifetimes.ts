const HOUR = 60 * 60;
const DAY = 24 * HOUR;

/** Access tokens expire after this time. Seconds. */
export const ACCESS_TOKEN_LIFETIME = HOUR;
/** All tokens of a grant expire this long after the consent (RFC 9700 §4.14.2). Seconds. */
export const ABSOLUTE_LIFETIME = 90 * DAY;
/** Grants expire this long after the consent: they outlive their last access token. Seconds. */
export const GRANT_LIFETIME = ABSOLUTE_LIFETIME + ACCESS_TOKEN_LIFETIME;
/** ID tokens expire after this time. Seconds. */
export const ID_TOKEN_LIFETIME = HOUR;
/** For how long clients may keep the public keys. A new key is published longer than that before it signs. Seconds. */
export const KEY_SET_MAX_AGE = 300;
/** Sessions of browsers expire after this time, however they are used (OWASP ASVS 5.0 V7.3.2). Seconds. */
export const SESSION_LIFETIME = 30 * DAY;
