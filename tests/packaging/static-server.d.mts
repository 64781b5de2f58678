export const STRICT: string;
export const ISOLATION: Record<string, string>;
export function serve(
  folder: string,
  policy?: string | null,
  headers?: Record<string, string>,
): Promise<{ address: string; close: () => void }>;
