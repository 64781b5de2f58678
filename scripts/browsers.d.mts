export interface WebKit {
  driver: string;
  browser: string;
}

export function chromium(): string | undefined;
export function firefox(): string | undefined;
export function webkit(): WebKit | undefined;
export function missingBrowsers(): { name: string; packages: string[] }[];
export const CHROMIUM_ARGS: string[];
