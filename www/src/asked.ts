import type { Stage } from "attnscope";
import { orderOf } from "./heads.ts";
import type { Picture } from "./picture.ts";
import { axesOf, isAfterMask } from "./stages.ts";
import type { Comparing, Work } from "./state.ts";

/** Whether passes can be compared at a stage: with and without a mask, or under two. */
export function canCompare(picture: Picture, { masks }: Work, stage: Stage, layer: number): boolean {
  return isAfterMask(picture, stage, layer) || (masks.length === 2 && stage === "masked");
}

/** The heads that an average is of: those that take part, or where none does, all. */
export function averagedHeads({ nHeads, off }: Picture): readonly number[] {
  const heads = orderOf(nHeads, null);
  const on = heads.filter((head) => !off.includes(head));
  return on.length > 0 ? on : heads;
}

/** What is asked to be shown of a stage that is split into `nHeads`: of which passes, and whether their heads' mean. */
export function askedOf(
  picture: Picture,
  work: Work,
  stage: Stage,
  layer: number,
): { readonly comparing: Comparing; readonly isMean: boolean } {
  const comparing = canCompare(picture, work, stage, layer) ? work.comparing : "with";
  const isMatrix = work.view.looking === "matrix" || comparing === "all";
  const isMean = picture.nHeads > 1 && work.heads.isAveraged && isMatrix && axesOf(stage).column === "key";
  return { comparing, isMean };
}
