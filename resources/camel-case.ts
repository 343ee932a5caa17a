/** The name of a property for that of a column, or of a field in JSON: `expires_at` becomes `expiresAt`. */
export function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, initial: string) => initial.toUpperCase());
}
