const HOUR = 60 * 60;
const DAY = 24 * HOUR;

/** Access tokens expire after this time. Seconds. */
export const ACCESS_TOKEN_LIFETIME = HOUR;
/** All tokens of a grant expire this long after the consent (RFC 9700 §4.14.2). Seconds. */
export const ABSOLUTE_LIFETIME = 90 * DAY;
