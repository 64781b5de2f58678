export const STRICT: string;
export function serve(folder: string, policy?: string | null): Promise<{ address: string; close: () => void }>;
