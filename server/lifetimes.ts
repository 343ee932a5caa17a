const HOUR = 60 * 60;
const DAY = 24 * HOUR;

/** Access tokens expire after this time. Seconds. */
export const ACCESS_TOKEN_LIFETIME = HOUR;
/** All tokens of a grant expire this long after the consent (RFC 9700 §4.14.2). Seconds. */
export const ABSOLUTE_LIFETIME = 90 * DAY;
/** ID tokens expire after this time. Seconds. */
export const ID_TOKEN_LIFETIME = HOUR;
/** Sessions of browsers expire after this time, however they are used (OWASP ASVS 5.0 V7.3.2). Seconds. */
export const SESSION_LIFETIME = 30 * DAY;
