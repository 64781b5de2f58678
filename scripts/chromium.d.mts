export function chromium(): string | undefined;
export const CHROMIUM_ARGS: string[];
