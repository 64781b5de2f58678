/** Whether a person types text here, with the browser's own undo. */
export function isTextField(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches("textarea:not([readonly]), input[type=text]");
}
