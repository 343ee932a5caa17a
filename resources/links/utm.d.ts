export type UtmField = "utm_source" | "utm_medium" | "utm_campaign" | "utm_term" | "utm_content";
export declare const UTM_FIELDS: readonly UtmField[];
export declare function utmOf(url: string): Record<UtmField, string>;
export declare function withUtm(url: string, values: Partial<Record<UtmField, string>>): string;
