export interface WebKit {
  driver: string;
  browser: string;
}

export function chromium(): string | undefined;
export function firefox(): string | undefined;
export function webkit(): WebKit | undefined;
export function missingBrowsers(): { name: string; packages: string[] }[];
export const CHROMIUM_ARGS: string[];
export const CHROMIUM_GPU_ARGS: string[];
export function firefoxGpu(): { firefoxUserPrefs: Record<string, boolean>; env?: Record<string, string | undefined> };
