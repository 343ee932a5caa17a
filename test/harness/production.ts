/** The settings that every server in production needs. */
export const PRODUCTION = { NODE_ENV: "production", REGISTRATION: "open", SELF_SERVICE_PLANS: "on" };
