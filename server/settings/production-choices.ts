type ChoiceName = "REGISTRATION" | "SELF_SERVICE_PLANS";
/** The settings whose defaults suit a trial, so that production requires a decision, and what each value means. */
export const PRODUCTION_CHOICES: readonly { name: ChoiceName; meanings: Record<string, string> }[] = [
  {
    name: "REGISTRATION",
    meanings: {
      open: "everyone can create an account and an organization",
      invite: "only users with an invitation can create an account",
      closed: "only the CLI creates accounts",
    },
  },
  {
    name: "SELF_SERVICE_PLANS",
    meanings: { on: "owners and admins choose any plan at no charge", off: "only the CLI changes plans" },
  },
];

/** Returns a problem for each choice that isn't made. A server that asks another one about tokens has no users. */
export function findOpenChoices(present: NodeJS.ProcessEnv): string[] {
  if (present.INTROSPECTION_URL) return [];
  return PRODUCTION_CHOICES.filter(({ name }) => !present[name]).map(({ name, meanings }) => {
    const values = Object.entries(meanings).map(([value, meaning]) => `${value} (${meaning})`);
    return `${name} is required in production: ${values.slice(0, -1).join(", ")} or ${values.at(-1)}`;
  });
}

export function describeChoice(name: ChoiceName, value: string): string {
  const choice = PRODUCTION_CHOICES.find((one) => one.name === name);
  return `${choice?.meanings[value]} (${name}=${value})`;
}
