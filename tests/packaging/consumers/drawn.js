/** Draws what `answer` gave. */
export function draw({ heatmap }, weights) {
  heatmap(document.querySelector("#app"), {
    matrix: { rows: 2, columns: 2, data: Float32Array.from(weights) },
    rowLabels: ["the", "cat"],
    columnLabels: ["the", "cat"],
    selected: { row: 1, column: 0 },
    label: "weights",
    describe: (cell, value) => `query ${cell.row}, key ${cell.column}, ${value.toFixed(2)}`,
  });
}
