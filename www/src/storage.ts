// A page may be refused storage, or have none left: then it only forgets.

type Area = "localStorage" | "sessionStorage";

export function stored(key: string, area: Area = "localStorage"): string | null {
  try {
    return window[area].getItem(key);
  } catch {
    return null;
  }
}

/** Whether it was kept. */
export function store(key: string, value: string, area: Area = "localStorage"): boolean {
  try {
    window[area].setItem(key, value);
    return true;
  } catch {
    return false;
  }
}
